// Short IDs, as tables on a terminal show them, and prefixes of IDs: replaced with the full ID before a
// command uses them. A full ID, or one that the caller chose, needs no request.
#pragma once

#include <string>

#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

std::string tenant_of(const Invocation& in);  // the argument <tenant>
std::string endpoint_of(Invocation& in);      // the argument <endpoint>, below <tenant>
std::string secret_of(Invocation& in);        // the argument <secret>, below <tenant> and <endpoint>
std::string event_of(Invocation& in);         // the argument <event>, below <tenant>
std::string replay_of(Invocation& in);        // the argument <replay>, below <tenant>
std::string key_of(Invocation& in);           // the argument <key>
std::string token_of(Invocation& in);         // the argument <token>, below <tenant>
// Any of the argument <delivery>, of IDs of dead letters, …; below --tenant if given.
std::string delivery_id(Invocation& in, const std::string& text);
std::string message_id(Invocation& in, const std::string& source, const std::string& text);
// For filters: --endpoint and --event. Throws Misuse for a short ID without a tenant.
std::optional<std::string> endpoint_filter(Invocation& in, const std::optional<std::string>& tenant);
std::optional<std::string> event_filter(Invocation& in, const std::optional<std::string>& tenant);

}  // namespace postrider::cli
