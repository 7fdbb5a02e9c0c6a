#include "postrider/api/resources/source_document.hpp"

#include <algorithm>
#include <boost/json/array.hpp>

#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/inbox/event_type.hpp"
#include "postrider/inbox/pick.hpp"

namespace postrider::api {

namespace {

using inbox::HmacScheme;
using inbox::Provider;
using inbox::SourceSettings;

constexpr TextRule kDescriptionRule{.bytes_max = 1024};
constexpr TextRule kSecretRule{.bytes_max = 512};
constexpr TextRule kShortRule{.bytes_max = 256, .may_be_empty = true};
constexpr IntegerRule kToleranceRule{1, 86'400};
constexpr IntegerRule kBodyRule{1, 25 << 20};
constexpr IntegerRule kAttemptsRule{1, 1'000};
constexpr size_t kHeadersMax = 50;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  return out;
}

bool is_header_name(std::string_view text) {
  return inbox::is_where(text) && !text.starts_with('/');
}

void read_where(Fields& fields, std::string_view name, std::optional<std::string>& target) {
  fields.read(name, target, kShortRule);
  if (target && !inbox::is_where(*target))
    fields.reject(name, "must be the name of a header, or a JSON pointer that begins with a slash");
}

void read_header(Fields& fields, std::string_view name, std::string& target) {
  fields.read(name, target, kShortRule);
  target = lower(target);
  if (!target.empty() && !is_header_name(target)) fields.reject(name, "must be the name of a header");
}

void read_headers(Fields& fields, std::vector<std::string>& target) {
  const auto* value = fields.take("headers");
  if (!value) return;
  const auto* array = value->if_array();
  if (!array || array->size() > kHeadersMax)
    return fields.reject("headers", "must be an array of at most " + std::to_string(kHeadersMax) + " names");
  std::vector<std::string> names;
  for (size_t i = 0; i < array->size(); ++i) {
    const auto* name = (*array)[i].if_string();
    if (name && is_header_name(*name))
      names.push_back(lower(*name));
    else
      fields.reject("headers", i, "must be the name of a header");
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  target = std::move(names);
}

void read_scheme(const boost::json::object& object, HmacScheme& scheme, FieldProblems& problems) {
  Fields fields(object, "/signature", problems);
  read_header(fields, "header", scheme.header);
  if (scheme.header.empty()) fields.reject("header", "must not be empty");
  fields.read("prefix", scheme.prefix, kShortRule);
  fields.read("template", scheme.signed_text, kShortRule);
  if (const auto pieces = inbox::parse_template(scheme.signed_text); !pieces)
    fields.reject("template", pieces.error());
  fields.read("hash", scheme.hash,
              Fields::WordRule<inbox::Hash>{inbox::parse_hash, inbox::Hash::sha256, "sha1, sha256, sha512"});
  fields.read("encoding", scheme.encoding,
              Fields::WordRule<inbox::SignatureEncoding>{inbox::parse_encoding, inbox::SignatureEncoding::hex,
                                                         "hex, base64"});
  fields.read(
      "key", scheme.key,
      Fields::WordRule<inbox::KeyForm>{inbox::parse_key_form, inbox::KeyForm::raw, "raw, base64, hex"});
  read_header(fields, "timestamp_header", scheme.timestamp_header);
  const bool signs_time = scheme.signed_text.find("{timestamp}") != std::string::npos;
  if (signs_time != !scheme.timestamp_header.empty())
    fields.reject("timestamp_header", signs_time
                                          ? "is required: the template contains {timestamp}"
                                          : "needs {timestamp} in the template; otherwise it is not signed");
  fields.finish();
}

void read_forward(Fields& fields, std::optional<inbox::Forward>& target, FieldProblems& problems) {
  const auto* value = fields.take("forward");
  if (!value) return;
  if (value->is_null()) return target.reset();
  const auto* object = value->if_object();
  if (!object) return fields.reject("forward", "must be an object or null");
  inbox::Forward forward;
  Fields inner(*object, "/forward", problems);
  inner.require("tenant_id");
  inner.read("tenant_id", forward.tenant_id, {.bytes_max = 64});
  inner.require("type");
  inner.read("type", forward.type, {.bytes_max = 256});
  if (!forward.type.empty()) {
    const auto checked = inbox::check_type_template(forward.type);
    if (!checked.empty()) inner.reject("type", checked);
  }
  inner.finish();
  target = std::move(forward);
}

std::optional<std::optional<inbox::Deduplicate>> parse_deduplicate(std::string_view text) {
  const auto word = inbox::parse_deduplicate(text);
  if (!word) return std::nullopt;
  return word;
}

std::optional<bool> parse_ordering(std::string_view text) {
  if (text == "none") return false;
  if (text == "strict") return true;
  return std::nullopt;
}

}  // namespace

void read_source_identity(const boost::json::object& document, inbox::NewSource& source,
                          FieldProblems& problems) {
  boost::json::object known;
  for (const auto* name : {"id", "provider", "secret"})
    if (const auto* value = document.if_contains(name)) known.emplace(name, *value);
  Fields fields(known, "", problems);
  fields.require("id");
  fields.read("id", source.id, {.bytes_max = 64});
  if (!source.id.empty() && !model::is_caller_id(source.id))
    fields.reject("id", "must consist of letters, digits, _ and -");
  fields.require("provider");
  fields.read("provider", source.provider,
              Fields::WordRule<Provider>{inbox::parse_provider, Provider::standard, inbox::provider_choices});
  fields.read("secret", source.secret, kSecretRule);
}

void read_source(const boost::json::object& document, Provider provider, SourceSettings& settings,
                 FieldProblems& problems) {
  Fields fields(document, "", problems);
  fields.read("description", settings.description, kDescriptionRule);
  if (const auto* value = provider == Provider::hmac ? fields.take("signature") : nullptr) {
    if (const auto* object = value->if_object())
      read_scheme(*object, settings.signature, problems);
    else
      fields.reject("signature", "must be an object");
  } else if (provider == Provider::hmac && !settings.signature.can_verify()) {
    fields.reject("signature", "the stored value cannot be read; send it again");
  }
  fields.read("tolerance_seconds", settings.tolerance_seconds, kToleranceRule, 300);
  read_where(fields, "idempotency_key", settings.idempotency_key);
  fields.read(
      "deduplicate", settings.deduplicate,
      Fields::WordRule<std::optional<inbox::Deduplicate>>{parse_deduplicate, std::nullopt, "content, id"});
  read_where(fields, "partition_key", settings.partition_key);
  fields.read("ordering", settings.is_strict, Fields::WordRule<bool>{parse_ordering, false, "none, strict"});
  if (settings.is_strict && !settings.partition_key)
    fields.reject("ordering", "strict needs a partition_key: messages are ordered per key");
  read_headers(fields, settings.headers);
  fields.read("body_bytes_max", settings.body_bytes_max, kBodyRule, 1 << 20);
  fields.read("consume", settings.is_consumed);
  read_forward(fields, settings.forward, problems);
  if (!settings.is_consumed && !settings.forward)
    fields.reject("consume", "must be true unless messages are forwarded");
  fields.read("max_attempts", settings.max_attempts, kAttemptsRule, 8);
  fields.finish();
}

std::string source_json(const inbox::Source& source, const std::string& public_url,
                        const SourceExtras& extras) {
  const SourceSettings& settings = source.settings;
  JsonObject json;
  json.add("id", source.id)
      .add("provider", label(source.provider))
      .add("url", public_url + "/in/" + source.id);
  if (extras.secret) json.add("secret", *extras.secret);
  json.add("description", settings.description);
  if (source.provider == Provider::hmac) json.raw("signature", to_json(settings.signature));
  json.add("tolerance_seconds", settings.tolerance_seconds)
      .add("idempotency_key", settings.idempotency_key)
      .add("deduplicate", label(source.deduplicate()))
      .add("partition_key", settings.partition_key)
      .add("ordering", settings.is_strict ? "strict" : "none")
      .add("headers", settings.headers)
      .add("body_bytes_max", settings.body_bytes_max)
      .add("consume", settings.is_consumed);
  if (settings.forward) {
    JsonObject forward;
    forward.add("tenant_id", settings.forward->tenant_id).add("type", settings.forward->type);
    json.raw("forward", forward.text());
  } else {
    json.raw("forward", "null");
  }
  json.add("max_attempts", settings.max_attempts)
      .add("configured_by", extras.is_configured ? "file" : "api")
      .add("created_at", source.created_at)
      .add("updated_at", source.updated_at);
  if (!extras.rejections) return json.text();
  std::vector<std::string> items;
  JsonObject dropped;
  for (const auto& rejection : *extras.rejections) {
    const bool is_dropped = rejection.reason == inbox::dropped_by_content;
    JsonObject item;
    if (!is_dropped) item.add("reason", rejection.reason);
    item.add("count", rejection.count)
        .add("last_at", rejection.last_at)
        .add("last_detail", rejection.last_detail);
    if (is_dropped)
      dropped = std::move(item);
    else
      items.push_back(item.text());
  }
  if (dropped.members().empty()) dropped.add("count", 0).raw("last_at", "null").raw("last_detail", "null");
  return json.raw("rejections", json_array(items)).raw("dropped_by_content", dropped.text()).text();
}

}  // namespace postrider::api
