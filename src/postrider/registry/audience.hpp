// Details of the network and the machines of postrider that a reader may see: operators everything,
// customers only what concerns the URL they typed.
#pragma once

#include <optional>
#include <string>

#include "postrider/http/client/blocked_destination.hpp"
#include "postrider/registry/keys.hpp"

namespace postrider::registry {

// Keys that are bound to a tenant are for customers.
http::Audience audience_of(const Principal& reader);

// The sentence about a failed exchange.
std::optional<std::string> shown_error(http::Audience audience, std::optional<std::string> detail);
// The same where the error's name is known.
std::optional<std::string> shown_error(http::Audience audience, const std::optional<std::string>& error,
                                       std::optional<std::string> detail);

// The reason why deliveries cannot be signed. Operators also see the file or program that holds the secret.
std::optional<std::string> shown_held_reason(http::Audience audience, std::optional<std::string> reason);

// An address that a name resolved to, the name of a node, or what an operator did and why.
std::optional<std::string> shown_to_operators(http::Audience audience, std::optional<std::string> value);

}  // namespace postrider::registry
