// Identifies the caller of a request. All kinds of credentials are recognised here: API keys, the cookies of
// browsers that signed in, and the session tokens of pages in a frame.
//
// Look-ups have a connection of their own per API loop (Services::lookups), which slow calls cannot keep
// busy, and are cached for seconds. The head of a request is enough, so a caller can be known before a large
// body is read.
#pragma once

#include <optional>
#include <string>

#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/services.hpp"
#include "postrider/base/result.hpp"
#include "postrider/http/request.hpp"
#include "postrider/registry/keys.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::api {

// The credential of a caller: small, and safe to keep during a call. Never the key itself.
struct Credential {
  registry::KeyHash key;    // or of the token of a session
  bool is_session = false;  // from a cookie, or of a page in a frame
  // Of the session, if it is from a cookie. The page in a frame presents its token itself, as programs do.
  std::optional<std::string> csrf_token{};
};

base::Result<Credential, NotAuthenticated> find_credential(const http::Request& head);

// A browser sends the cookie with requests that other sites make it send. A change with a cookie must come
// from one of our own pages: returns the problem if it does not. No value for keys.
std::optional<http::Problem> find_forgery(const http::Request& request, const Credential& credential,
                                          const config::Config& config);

// No value for a credential that is unknown, revoked or expired. Throws pg::Error when the database cannot be
// asked.
runtime::Task<std::optional<registry::Principal>> authenticate(Services& services, Credential credential);

// The source of inbound webhooks with this id, or null; cached like keys. Throws pg::Error.
runtime::Task<inbox::SourcePtr> find_source(Services& services, std::string id);

// Waits a moment for the connection of look-ups. Throws pg::Error(unavailable).
runtime::Task<void> wait_for_lookups(Services& services);

}  // namespace postrider::api
