// Twilio's scheme, which signs the URL and the form's parameters instead of the body's bytes.
#pragma once

#include <optional>
#include <span>

#include "postrider/inbox/verify.hpp"

namespace postrider::inbox {

std::optional<Rejection> verify_twilio(std::span<const VerifyKey> keys, const Arrival& arrival);

}  // namespace postrider::inbox
