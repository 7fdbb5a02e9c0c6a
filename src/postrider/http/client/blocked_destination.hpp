// Describes a destination that the guard blocks, for readers who may know the network and for readers who may
// not. Customers choose the URLs: they see the problem with the scheme, the port or the address they
// entered, but never what a name resolves to, or which networks this machine is in.
//
// Stored texts (attempts, dead letters, probes) are those for operators; shown_to() turns them into what a
// reader may see.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "postrider/http/client/guard.hpp"

namespace postrider::http {

enum class Audience { operators, customers };

// "destination not allowed: …"
std::string describe(const BlockedDestination& blocked, Audience audience);

// The same of a sentence that was written for operators; other sentences stay as they are.
std::string shown_to(Audience audience, std::string detail);

}  // namespace postrider::http
