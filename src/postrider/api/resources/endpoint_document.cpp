#include "postrider/api/resources/endpoint_document.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/header_rules.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/network_list.hpp"
#include "postrider/base/text.hpp"
#include "postrider/delivery/attempt/retry_schedule.hpp"
#include "postrider/model/event_type.hpp"
#include "postrider/registry/allow_networks.hpp"
#include "postrider/registry/audience.hpp"

namespace postrider::api {

namespace {

constexpr TextRule kUrlRule{.bytes_max = http::kUrlBytesMax};
constexpr TextRule kDescriptionRule{.bytes_max = 1024, .may_be_empty = true};
constexpr TextRule kSecretRule{.bytes_max = 512};
constexpr IntegerRule kAttemptsRule{1, 100};
constexpr IntegerRule kTimeoutRule{100, 120'000};
constexpr IntegerRule kGiveUpRule{1, 30 * 86'400};
constexpr IntegerRule kInFlightRule{1, 10'000};
constexpr NumberRule kRateRule{1'000'000};
constexpr size_t kMetadataMax = 16 << 10;

constexpr Fields::WordRule<model::Ordering> kOrderingRule{model::parse_ordering, model::Ordering::none,
                                                          "none, strict"};
constexpr Fields::WordRule<crypto::SignatureScheme> kSignatureRule{
    crypto::parse_signature_scheme, crypto::SignatureScheme::standard,
    "standard, standard-ed25519, hex-v1, sha256"};

void read_url(Fields& fields, EndpointDocument& into, const EndpointRules& rules) {
  std::string text;
  fields.read("url", text, kUrlRule);
  if (text.empty()) return;
  auto url = http::parse_url(text);
  if (!url) return fields.reject("url", std::string(http::describe(url.error())));
  // What cannot be checked now is checked at each delivery.
  const auto rejected = into.guard(rules).inspect(*url);
  if (rejected && rejected->reason != http::BlockedReason::unknown_own)
    return fields.reject("url", http::describe(*rejected, rules.audience));
  into.draft.settings.url = std::move(text);
  into.url = std::move(*url);
}

void read_patterns(Fields& fields, EndpointDocument& into, size_t patterns_max) {
  const auto* value = fields.take("event_types");
  if (!value) return;
  const auto* array = value->if_array();
  if (!array || array->empty() || array->size() > patterns_max)
    return fields.reject("event_types", "must be an array of 1 to " + std::to_string(patterns_max) +
                                            " event types or patterns");
  std::vector<std::string> patterns;
  for (size_t i = 0; i < array->size(); ++i) {
    const auto* text = (*array)[i].if_string();
    if (!text || !model::is_pattern(*text)) {
      fields.reject("event_types", i,
                    "must be an event type like invoice.paid, a prefix like invoice.*, or *");
    } else if (std::find(patterns.begin(), patterns.end(), std::string_view(*text)) == patterns.end()) {
      patterns.emplace_back(*text);
    }
  }
  into.draft.patterns = std::move(patterns);
}

void read_headers(Fields& fields, EndpointDocument& into, FieldProblems& problems,
                  const config::Config& config) {
  const auto* value = fields.take("headers");
  if (!value) return;
  registry::CustomHeaders headers;
  if (!value->is_null()) {
    const auto* object = value->if_object();
    if (!object || object->size() > static_cast<size_t>(config.custom_headers_max))
      return fields.reject("headers", "must be an object of at most " +
                                          std::to_string(config.custom_headers_max) + " names and values");
    Fields members(*object, fields.pointer("headers"), problems);
    for (const auto& member : *object) {
      const std::string_view name = member.key();
      const auto* text = member.value().if_string();
      const auto is_same_name = [&](const registry::CustomHeader& other) {
        return base::equals_ignoring_case(other.name, name);
      };
      if (!text) {
        members.reject(name, "must be a string");
      } else if (const auto why =
                     why_not_header(name, *text, static_cast<size_t>(config.custom_header_bytes_max))) {
        members.reject(name, *why);
      } else if (std::any_of(headers.begin(), headers.end(), is_same_name)) {
        members.reject(name, "duplicate header");
      } else {
        headers.push_back({std::string(name), std::string(*text)});
      }
    }
  }
  into.draft.headers = std::move(headers);
}

model::OnRejected default_on_rejected(const config::Config& config) {
  return model::parse_on_rejected(config.default_on_rejected).value_or(model::OnRejected::dead_letter);
}

// The form of retry_schedule: a list of seconds, or no value for the built-in schedule.
std::optional<std::string> default_schedule(const config::Config& config) {
  if (config.default_retry_schedule.empty()) return std::nullopt;
  boost::json::array delays;
  for (const std::chrono::milliseconds delay : config.default_retry_schedule) {
    if (delay.count() % 1'000 == 0)
      delays.emplace_back(delay.count() / 1'000);
    else
      delays.emplace_back(static_cast<double>(delay.count()) / 1'000);
  }
  return boost::json::serialize(delays);
}

void read_schedule(Fields& fields, std::optional<std::string>& schedule, const config::Config& config) {
  const auto* value = fields.take("retry_schedule");
  if (!value) return;
  if (value->is_null()) {
    schedule = default_schedule(config);
    return;
  }
  std::string text = boost::json::serialize(*value);
  const auto parsed = delivery::RetrySchedule::from_json(text);
  if (!parsed) return fields.reject("retry_schedule", parsed.error());
  schedule = std::move(text);
}

void read_secret(Fields& fields, EndpointDocument& into, const registry::ReferencePolicy* references) {
  fields.read("secret", into.secret, kSecretRule);
  if (!into.secret) return;
  if (auto why = registry::why_not_secret(references, into.draft.settings.signature, *into.secret))
    fields.reject("secret", std::move(*why));
}

std::string masked_headers(const registry::Endpoint& endpoint, const crypto::MasterKeys& keys) {
  if (endpoint.headers_sealed.empty()) return "{}";
  const registry::Sealing sealing{keys, endpoint.id};
  const auto headers = sealing.open_headers(endpoint.headers_sealed);
  if (!headers) return "null";  // there are some, but no configured master key opens them
  JsonObject json;
  for (const auto& header : *headers) json.add(header.name, masked_value);
  return json.text();
}

}  // namespace

registry::EndpointSettings default_settings(const config::Config& config) {
  registry::EndpointSettings settings;
  settings.max_attempts = config.default_max_attempts;
  settings.timeout_ms = config.default_timeout_ms;
  settings.give_up_seconds = config.default_give_up_seconds;
  settings.max_in_flight = config.default_max_in_flight;
  settings.on_rejected = default_on_rejected(config);
  settings.retry_schedule = default_schedule(config);
  return settings;
}

http::AddressGuard EndpointDocument::guard(const EndpointRules& rules) const {
  std::vector<base::Network> allowed = rules.allow_networks;
  const auto& own = draft.settings.allow_networks;
  allowed.insert(allowed.end(), own.begin(), own.end());
  return http::AddressGuard(rules.guard, allowed);
}

void EndpointDocument::read(const boost::json::object& document, const EndpointRules& rules,
                            FieldProblems& problems) {
  const config::Config& config = rules.config;
  registry::EndpointSettings& settings = draft.settings;
  Fields fields(document, "", problems);
  if (kind == DocumentKind::whole) {
    fields.require("url");
    fields.require("event_types");
  }
  read_networks(fields, settings.allow_networks);  // first, because they apply to the URL
  read_url(fields, *this, rules);
  read_patterns(fields, *this, static_cast<size_t>(config.subscriptions_max));
  fields.read("description", settings.description, kDescriptionRule);
  fields.read("max_attempts", settings.max_attempts, kAttemptsRule, config.default_max_attempts);
  fields.read("timeout_ms", settings.timeout_ms, kTimeoutRule, config.default_timeout_ms);
  fields.read("give_up_seconds", settings.give_up_seconds, kGiveUpRule, config.default_give_up_seconds);
  fields.read("max_in_flight", settings.max_in_flight, kInFlightRule, config.default_max_in_flight);
  fields.read("rate_per_second", settings.rate_per_second, kRateRule);
  const bool has_rate = kind == DocumentKind::whole || fields.has("rate_per_second");
  if (has_rate && !settings.rate_per_second) settings.rate_per_second = rules.rate_per_second_max;
  fields.read("ordering", settings.ordering, kOrderingRule);
  read_schedule(fields, settings.retry_schedule, config);
  const Fields::WordRule<model::OnRejected> on_rejected_rule{
      model::parse_on_rejected, default_on_rejected(config), "dead_letter, retry, pause"};
  fields.read("on_rejected", settings.on_rejected, on_rejected_rule);
  read_headers(fields, *this, problems, config);
  fields.read("signature", settings.signature, kSignatureRule);
  fields.read_object("metadata", settings.metadata, kMetadataMax);
  if (kind == DocumentKind::whole) read_secret(fields, *this, rules.references);
  fields.finish();
}

std::string endpoint_json(const registry::Endpoint& endpoint, const EndpointReader& reader,
                          const std::string* secret) {
  const auto& settings = endpoint.settings;
  std::optional<base::Timestamp> disable_at;
  if (endpoint.failing_counted_from && reader.disable_after.count() > 0)
    disable_at = *endpoint.failing_counted_from + reader.disable_after;
  JsonObject json;
  json.add("id", endpoint.public_id)
      .add("tenant_id", endpoint.tenant_id)
      .add("url", settings.url)
      .add("description", settings.description)
      .add("event_types", endpoint.patterns)
      .add("status", model::label(endpoint.status))
      .add("status_reason", endpoint.status_reason)
      .add("status_since", endpoint.status_since)
      .add("status_by", model::label(endpoint.status_by))
      .add("held_reason", registry::shown_held_reason(reader.audience, endpoint.held_reason))
      .add("held_since", endpoint.held_since)
      .add("health", endpoint.health())
      .add("failing_since", endpoint.failing_since)
      .add("last_success_at", endpoint.last_success_at)
      .add("last_failure_at", endpoint.last_failure_at)
      .add("failures_in_a_row", endpoint.failures)
      .add("disable_at", disable_at)
      .add("breaker", endpoint.is_breaker_open ? "open" : "closed")
      .add("breaker_since", endpoint.breaker_since)
      .add("next_probe_at", endpoint.next_probe_at)
      .add("last_probe_at", endpoint.last_probe_at)
      .add("last_probe_error", registry::shown_error(reader.audience, endpoint.last_probe_error))
      .add("pending", endpoint.pending)
      .add("pending_is_capped", endpoint.is_pending_capped)
      .add("oldest_pending_at", endpoint.oldest_pending_at)
      .add("max_attempts", settings.max_attempts)
      .add("timeout_ms", settings.timeout_ms)
      .add("give_up_seconds", settings.give_up_seconds)
      .add("max_in_flight", settings.max_in_flight)
      .add("rate_per_second", settings.rate_per_second)
      .add("ordering", model::label(settings.ordering))
      .raw_or_null("retry_schedule", settings.retry_schedule)
      .add("on_rejected", model::label(settings.on_rejected))
      .raw("headers", masked_headers(endpoint, reader.keys))
      .add("signature", crypto::label(settings.signature));
  if (reader.audience == http::Audience::operators)
    json.add("allow_networks", registry::texts_of(settings.allow_networks));
  json.raw_or_null("metadata", settings.metadata)
      .add("created_at", endpoint.created_at)
      .add("updated_at", endpoint.updated_at);
  if (secret) {
    json.add("secret", *secret);
    const auto key = crypto::SigningKey::from_secret(settings.signature, *secret);
    if (key && key->is_asymmetric()) json.add("public_key", key->public_text());
  }
  return json.text();
}

}  // namespace postrider::api
