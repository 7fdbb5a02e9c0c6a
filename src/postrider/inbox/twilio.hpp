// Twilio's scheme, which signs the URL and the form's parameters instead of the body's bytes.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "postrider/inbox/verify.hpp"

namespace postrider::inbox {

// The form's parameters in the order in which Twilio signs them after the URL. Empty if the URL's query has
// the hash of the body instead. No value if the body is neither a form nor hashed.
std::optional<std::string> twilio_parameters(const Arrival& arrival);

std::optional<InboundRejection> verify_twilio(std::span<const VerifyKey> keys, const Arrival& arrival);

}  // namespace postrider::inbox
