#include "postrider/api/tenant_document.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "postrider/api/document.hpp"
#include "postrider/api/json_writer.hpp"
#include "postrider/http/url.hpp"
#include "postrider/model/ids.hpp"

namespace postrider::api {

namespace {

constexpr TextRule kNameRule{.bytes_max = 256};
constexpr TextRule kReasonRule{.bytes_max = 1024};
constexpr IntegerRule kInFlightRule{1, 100'000};
constexpr IntegerRule kPayloadRule{1, 16 << 20};
constexpr IntegerRule kEndpointsRule{1, 1'000'000};
constexpr NumberRule kRateRule{1'000'000};
constexpr size_t kMetadataMax = 16 << 10;
constexpr size_t kContactsMax = 20;
constexpr size_t kMailMax = 254;

// Enough of a form to catch slips; whether somebody reads it only a mail can tell.
bool is_mail_address(std::string_view text) {
  const size_t at = text.find('@');
  if (at == std::string_view::npos || at == 0 || text.size() > kMailMax) return false;
  const std::string_view domain = text.substr(at + 1);
  const auto is_odd = [](char c) {
    return c <= 0x20 || c == 0x7F || c == '<' || c == '>' || c == ',' || c == ';';
  };
  for (const char c : text)
    if (is_odd(c)) return false;
  return domain.find('@') == std::string_view::npos && domain.find('.') != std::string_view::npos &&
         !domain.starts_with('.') && !domain.ends_with('.');
}

void read_contacts(Fields& fields, std::optional<std::string>& contacts) {
  const auto* value = fields.take("contacts");
  if (!value) return;
  if (value->is_null()) return contacts.reset();
  const auto* array = value->if_array();
  if (!array || array->size() > kContactsMax)
    return fields.refuse("contacts", "must be an array of at most " + std::to_string(kContactsMax) +
                                         " e-mail addresses or URLs");
  bool is_good = true;
  for (size_t i = 0; i < array->size(); ++i) {
    const auto* text = (*array)[i].if_string();
    if (text && (is_mail_address(*text) || http::parse_url(*text))) continue;
    fields.refuse("contacts", i, "must be an e-mail address or a URL");
    is_good = false;
  }
  if (is_good) contacts = boost::json::serialize(*array);
}

}  // namespace

void read_tenant(const boost::json::object& document, std::string* id, registry::TenantSettings& settings,
                 FieldProblems& problems) {
  Fields fields(document, "", problems);
  if (id) {
    fields.require("id");
    fields.read("id", *id, {.bytes_max = 64});
    if (!id->empty() && !model::is_caller_id(*id))
      fields.refuse("id", "must consist of letters, digits, _ and -");
  }
  fields.read("name", settings.name, kNameRule);
  fields.read("max_in_flight", settings.max_in_flight, kInFlightRule);
  fields.read("rate_per_second", settings.rate_per_second, kRateRule);
  fields.read("publish_rate_per_second", settings.publish_rate_per_second, kRateRule);
  fields.read("payload_bytes_max", settings.payload_bytes_max, kPayloadRule);
  fields.read("endpoints_max", settings.endpoints_max, kEndpointsRule);
  read_contacts(fields, settings.contacts);
  fields.read_object("metadata", settings.metadata, kMetadataMax);
  fields.finish();
}

std::string tenant_json(const registry::Tenant& tenant) {
  const auto& settings = tenant.settings;
  JsonObject json;
  json.add("id", tenant.id)
      .add("name", settings.name)
      .add("status", model::label(tenant.status))
      .add("status_reason", tenant.status_reason)
      .add("status_since", tenant.status_since)
      .add("max_in_flight", settings.max_in_flight)
      .add("rate_per_second", settings.rate_per_second)
      .add("publish_rate_per_second", settings.publish_rate_per_second)
      .add("payload_bytes_max", settings.payload_bytes_max)
      .add("endpoints_max", settings.endpoints_max)
      .raw_or_null("contacts", settings.contacts)
      .raw_or_null("metadata", settings.metadata)
      .add("endpoint_count", tenant.endpoint_count)
      .add("created_at", tenant.created_at)
      .add("updated_at", tenant.updated_at);
  return json.text();
}

void read_reason(const boost::json::object& document, std::optional<std::string>& reason,
                 FieldProblems& problems) {
  Fields fields(document, "", problems);
  fields.read("reason", reason, kReasonRule);
  fields.finish();
}

}  // namespace postrider::api
