#include "postrider/delivery/attempt/lane_config.hpp"

#include <algorithm>
#include <utility>

#include "postrider/telemetry/log.hpp"

namespace postrider::delivery {

namespace {

LaneConfig::Mode mode_of(const registry::EndpointConfig& endpoint, bool can_sign) {
  using model::EndpointStatus;
  using model::TenantStatus;
  if (endpoint.status == EndpointStatus::deleted || endpoint.tenant_status == TenantStatus::deleted)
    return LaneConfig::Mode::cancel;
  if (endpoint.cancel_before) return LaneConfig::Mode::clear;
  if (endpoint.status == EndpointStatus::disabled) return LaneConfig::Mode::disable;
  return endpoint.is_sending() && can_sign ? LaneConfig::Mode::send : LaneConfig::Mode::hold;
}

RetrySchedule schedule_of(const registry::LoadedEndpoint& endpoint) {
  auto schedule = RetrySchedule::from_json(endpoint.retry_schedule);
  return schedule ? *schedule : RetrySchedule();
}

// The secret that a reference stands for. Where there is none, the lane waits: an old secret alone must not
// sign.
std::optional<std::string> look_up(const std::string& reference, registry::SecretResolver* secrets,
                                   LaneConfig& config) {
  if (secrets == nullptr) {
    config.why_unsigned = "secret references are not resolved here";
    return std::nullopt;
  }
  const auto found = secrets->find(reference);
  config.look_up_at = std::min(config.look_up_at.value_or(found.ask_again), found.ask_again);
  config.is_first_lookup |= !found.secret && found.error.empty();
  if (!found.secret)
    config.why_unsigned = found.error.empty() ? "the secret is being looked up" : found.error;
  return found.secret;
}

}  // namespace

std::shared_ptr<const LaneConfig> make_lane_config(registry::LoadedEndpoint endpoint,
                                                   registry::SecretResolver* secrets,
                                                   std::shared_ptr<const http::DialProfile> profile) {
  auto config = std::make_shared<LaneConfig>();
  config->signer.scheme = endpoint.signature;
  if (endpoint.unreadable)
    config->why_unsigned = "its secret or headers cannot be decrypted with a configured master key";
  for (const registry::ActiveSecret& secret : endpoint.secrets) {
    const bool is_reference = registry::is_reference(secret.text);
    std::optional<std::string> text = secret.text;
    if (is_reference) text = look_up(secret.text, secrets, *config);
    std::optional<crypto::SigningKey> key;
    if (text) {
      auto read = crypto::SigningKey::from_secret(endpoint.signature, *text);
      if (read)
        key = std::move(*read);
      else
        config->why_unsigned = "the secret " + read.error();
    }
    if (!key && is_reference) {
      config->signer.keys.clear();
      break;
    }
    if (!key) continue;
    config->signer.keys.push_back(std::move(*key));
    if (const auto end = secret.expires_at)
      config->reload_at = std::min(config->reload_at.value_or(*end), *end);
  }
  config->mode = mode_of(endpoint, config->can_sign());
  if (!config->can_sign() && config->mode == LaneConfig::Mode::hold)
    telemetry::log_error("endpoint_cannot_sign")
        .field("endpoint_id", endpoint.public_id)
        .field("tenant_id", endpoint.tenant_id)
        .field("detail", "no secret of this endpoint can be read; its deliveries are held")
        .field("reason", config->why_unsigned);
  auto url = http::parse_url(endpoint.url);
  if (url) config->url = std::move(*url);
  config->profile = std::move(profile);
  config->retry.max_attempts = endpoint.max_attempts;
  config->retry.give_up = std::chrono::seconds(endpoint.give_up_seconds);
  config->retry.on_rejected = endpoint.on_rejected;
  config->retry.schedule = schedule_of(endpoint);
  config->endpoint = std::move(static_cast<registry::EndpointConfig&>(endpoint));
  return config;
}

}  // namespace postrider::delivery
