// The cookies of browsers that signed in, and whether a request comes from one of our own pages.
//
// Over https the names begin with `__Host-`, so that no other host can set them. On a loopback address plain
// http works, too, with names of their own. On plain http elsewhere there are no sessions: the cookie could
// be read in transit.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "postrider/http/request.hpp"
#include "postrider/registry/keys.hpp"

namespace postrider::web {

using registry::SessionKind;

// The token of the request's session of that kind.
std::optional<std::string> find_session_token(const http::Request& request, SessionKind kind);
// The same, of the kind that the request is about. Pages of the portal send `x-postrider-app: portal`; a
// browser may have a session of the console beside it.
std::optional<std::string> find_session_token(const http::Request& request);

// The server's address as the browser sees it.
enum class Transport { https, loopback, insecure };
struct Visit {
  bool is_same_origin = false;  // the request comes from a page of this server, or from no page
  Transport transport = Transport::insecure;
};
// By the Origin of the request, or by the public URL without one.
Visit visit_of(const http::Request& request, std::string_view public_url);

// For requests that change something: Origin is required, and is the host that the request is for.
bool is_from_our_pages(const http::Request& request, std::string_view public_url);

// Values of Set-Cookie. Transport::insecure is a bug.
std::string set_cookie(SessionKind kind, Transport transport, std::string_view token,
                       std::chrono::seconds age);
std::string clear_cookie(SessionKind kind, Transport transport);

}  // namespace postrider::web
