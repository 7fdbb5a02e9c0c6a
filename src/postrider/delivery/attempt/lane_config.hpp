// An endpoint's registry entry, prepared for sending: parsed and decoded once, used for every attempt.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "postrider/delivery/attempt/sign.hpp"
#include "postrider/delivery/attempt/verdict.hpp"
#include "postrider/http/url.hpp"
#include "postrider/registry/endpoint_config.hpp"
#include "postrider/registry/secret_resolver.hpp"

namespace postrider::delivery {

struct LaneConfig {
  // The lane's treatment of its rows.
  enum class Mode {
    send,
    hold,     // paused, or deliveries cannot be signed: rows stay
    disable,  // rows become dead letters `endpoint_disabled`
    cancel,   // deleted: rows are canceled
    clear,    // rows up to endpoint.cancel_before are canceled, then it continues
  };

  registry::EndpointConfig endpoint;
  Mode mode = Mode::hold;
  std::optional<http::Url> url;  // none: it does not parse any more, so every attempt is blocked
  std::shared_ptr<const http::DialProfile> profile;  // null: the client's own
  RetryPolicy retry;

  Signer signer;
  // An overlapping secret ends then: load again.
  std::optional<base::Timestamp> reload_at;
  // A reference has to be looked up again: load again, too.
  std::optional<base::SteadyTime> look_up_at;
  std::string why_unsigned;  // why a secret cannot be used; empty: no reason
  // A reference is being looked up for the first time: whether the lane will be held is not known yet.
  bool is_first_lookup = false;

  bool can_sign() const { return !signer.keys.empty(); }
  // The reason why deliveries are held although the endpoint is active; empty: they are not.
  std::string held_reason() const { return endpoint.is_sending() && !can_sign() ? why_unsigned : ""; }
};

// References among the secrets are looked up; missing ones hold the lane until `look_up_at`.
// Without a resolver, or a policy that allows it, a reference is a secret that cannot be read.
std::shared_ptr<const LaneConfig> make_lane_config(
    registry::LoadedEndpoint endpoint, registry::SecretResolver* secrets = nullptr,
    std::shared_ptr<const http::DialProfile> profile = nullptr);

}  // namespace postrider::delivery
