// Sessions of browsers: a random token in a cookie, stored as a SHA-256 hash, with the rights of an API key.
//
// A session has the rights that its key has now, and ends with it. It also ends by itself: after a time
// without requests, and at a fixed time after it was opened. A one-time link opens a session without showing
// the key to the browser.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "postrider/base/time.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/registry/caller.hpp"
#include "postrider/registry/keys.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::web {

using registry::SessionKind;
using TokenHash = crypto::Digest256;

std::string generate_token();          // 43 characters of base64url: 256 bits
bool is_token(std::string_view text);  // has that form
TokenHash hash_token(std::string_view token);
// What a page of the session sends with every change. It cannot be derived from what the database has.
std::string csrf_token(std::string_view token);

struct SessionLimits {
  std::chrono::seconds idle, total;
};
inline constexpr SessionLimits console_limits{std::chrono::hours(12), std::chrono::days(7)};

// Nothing for a session that is unknown or over, or whose key is. Notes that the session is in use.
runtime::Task<std::optional<registry::FoundKey>> find_session(pg::Link& link, TokenHash hash);

struct OpenedSession {
  std::string token;
  base::Timestamp expires_at;
};
// Opens a session of the console with the rights of the key.
runtime::Task<OpenedSession> open_console(pg::Link& link, registry::Caller caller, model::KeyId key);

// Ends it. False: there is no such session.
runtime::Task<bool> end_session(pg::Link& link, registry::Caller caller, TokenHash hash);

struct CreatedLink {
  std::string id;     // public ID
  std::string token;  // for the fragment of the address; not stored
  base::Timestamp expires_at;
};
inline constexpr std::chrono::seconds console_link_lifetime = std::chrono::minutes(5);
// A link that opens the console with the rights of the key, once.
runtime::Task<CreatedLink> create_console_link(pg::Link& link, registry::Caller caller, model::KeyId key);

// Uses the link up and opens its session. Nothing if the link is unknown, expired or used, or its key has
// ended. `caller.id` is set to the link's key.
runtime::Task<std::optional<OpenedSession>> follow_console_link(pg::Link& link, registry::Caller caller,
                                                                std::string token);

}  // namespace postrider::web
