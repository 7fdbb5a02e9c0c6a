#include "postrider/api/resources/tenant_document.hpp"

#include <algorithm>

#include "postrider/api/resources/contact_document.hpp"
#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/network_list.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/registry/allow_networks.hpp"

namespace postrider::api {

namespace {

constexpr TextRule kNameRule{.bytes_max = 256};
constexpr TextRule kReasonRule{.bytes_max = 1024};
constexpr IntegerRule kInFlightRule{1, 100'000};
constexpr int64_t kPayloadMax = 16 << 20;
constexpr IntegerRule kEndpointsRule{1, 1'000'000};
constexpr NumberRule kRateRule{1'000'000};
constexpr size_t kMetadataMax = 16 << 10;

void read_limits(Fields& fields, const TenantRules& rules, registry::TenantSettings& settings) {
  fields.read("max_in_flight", settings.max_in_flight, kInFlightRule);
  fields.read("rate_per_second", settings.rate_per_second, kRateRule);
  fields.read("publish_rate_per_second", settings.publish_rate_per_second, kRateRule);
  fields.read("payload_bytes_max", settings.payload_bytes_max, IntegerRule{1, rules.payload_bytes_max});
  fields.read("endpoints_max", settings.endpoints_max, kEndpointsRule);
  read_networks(fields, settings.allow_networks);
}

}  // namespace

TenantRules TenantRules::of(const config::Config& config) {
  return {static_cast<int32_t>(std::min(kPayloadMax, config.lane_bytes_max))};
}

void read_tenant(const boost::json::object& document, std::string* id, const TenantRules& rules,
                 registry::TenantSettings& settings, FieldProblems& problems) {
  Fields fields(document, "", problems);
  if (id) {
    fields.require("id");
    fields.read("id", *id, {.bytes_max = 64});
    if (!id->empty() && !model::is_tenant_id(*id)) fields.reject("id", std::string(model::kTenantIdRule));
  }
  fields.read("name", settings.name, kNameRule);
  read_limits(fields, rules, settings);
  read_contacts(fields, settings.contacts, problems);
  fields.read_object("metadata", settings.metadata, kMetadataMax);
  fields.finish();
}

std::string tenant_json(const registry::Tenant& tenant, http::Audience audience) {
  const auto& settings = tenant.settings;
  JsonObject json;
  json.add("id", tenant.id)
      .add("name", settings.name)
      .add("status", model::label(tenant.status))
      .add("status_reason", tenant.status_reason)
      .add("status_since", tenant.status_since)
      .add("status_by", model::label(tenant.status_by))
      .add("max_in_flight", settings.max_in_flight)
      .add("rate_per_second", settings.rate_per_second)
      .add("publish_rate_per_second", settings.publish_rate_per_second)
      .add("payload_bytes_max", settings.payload_bytes_max)
      .add("endpoints_max", settings.endpoints_max);
  if (audience == http::Audience::operators)
    json.add("allow_networks", registry::texts_of(settings.allow_networks));
  json.raw_or_null("contacts", tenant.contact_states)
      .raw_or_null("metadata", settings.metadata)
      .add("endpoint_count", tenant.endpoint_count)
      .add("created_at", tenant.created_at)
      .add("updated_at", tenant.updated_at);
  if (tenant.contact_secret) json.add("contact_secret", *tenant.contact_secret);
  return json.text();
}

void read_reason(const boost::json::object& document, std::optional<std::string>& reason,
                 FieldProblems& problems) {
  Fields fields(document, "", problems);
  fields.read("reason", reason, kReasonRule);
  fields.finish();
}

}  // namespace postrider::api
