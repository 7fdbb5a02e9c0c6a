// Sessions of browsers: a random token, stored as a SHA-256 hash. It is in a cookie or, for a page in a
// frame, where browsers keep cookies back, in the page's memory.
//
// A session has the rights that its key has now, and ends with it. It also ends by itself: after a time
// without requests, and at a fixed time after it was opened. A one-time link opens a session without showing
// the key to the browser. Links for the portal are in portal_links.hpp.
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
// Of a page in a frame, sent as a Bearer token: "prs_" and a token. Neither works in place of the other.
bool is_embedded_token(std::string_view text);
TokenHash hash_token(std::string_view token);
// The token that a page of the session sends with every change. It cannot be derived from the database.
std::string csrf_token(std::string_view token);

struct SessionLimits {
  std::chrono::seconds idle, total;
};
inline constexpr SessionLimits console_limits{std::chrono::hours(12), std::chrono::days(7)};
inline constexpr SessionLimits portal_limits{std::chrono::hours(1), std::chrono::hours(8)};

// No value for a session that is unknown or over, or whose key or tenant is. Records that it is in use.
runtime::Task<std::optional<registry::FoundKey>> find_session(pg::Link& link, TokenHash hash);

struct OpenedSession {
  std::string token;
  base::Timestamp expires_at;
  SessionKind kind;
};
// Signs in with the key: a customer's opens the portal, any other the console.
runtime::Task<OpenedSession> open_session(pg::Link& link, registry::Caller caller, registry::Principal key);

struct NewSession {
  SessionKind kind = SessionKind::console;
  model::KeyId key{};
  std::optional<model::LinkId> link{};
  std::optional<model::TenantId> tenant{};  // of the portal
  bool is_read_only = false;
  bool sees_payloads = true;
  bool is_preview = false;
  bool is_embedded = false;
  std::optional<std::string> label{};
  SessionLimits limits = console_limits;
};
// In the transaction, without its commit.
runtime::Task<OpenedSession> insert_session(pg::Transaction& transaction, registry::Caller caller,
                                            NewSession wanted);

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

// Signs in with the link's key; the link cannot be used again. No value if the link is unknown, expired or
// used, or its key is expired or revoked.
runtime::Task<std::optional<OpenedSession>> follow_console_link(pg::Link& link, registry::Caller caller,
                                                                std::string token);

}  // namespace postrider::web
