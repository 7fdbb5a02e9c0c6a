#include "postrider/web/cookies.hpp"

#include <algorithm>

#include "postrider/base/check.hpp"
#include "postrider/http/request_grammar.hpp"
#include "postrider/web/sessions.hpp"

namespace postrider::web {

namespace {

std::string cookie_name(SessionKind kind, Transport transport) {
  return (transport == Transport::https ? "__Host-postrider-" : "postrider-") + std::string(label(kind));
}

// "https://host:port" to "host:port"; nothing for anything else.
std::optional<std::string_view> authority_of(std::string_view origin) {
  const size_t scheme = origin.find("://");
  if (scheme == std::string_view::npos) return std::nullopt;
  return origin.substr(scheme + 3);
}

bool is_loopback(std::string_view authority) {
  const bool is_v6 = authority.starts_with('[');
  const size_t end = is_v6 ? authority.find(']') + 1 : authority.find(':');
  const std::string_view host = authority.substr(0, end);
  return host == "localhost" || host == "127.0.0.1" || host == "[::1]";
}

std::optional<std::string_view> cookie_of(std::string_view header, std::string_view name) {
  while (!header.empty()) {
    const size_t end = std::min(header.find(';'), header.size());
    std::string_view pair = header.substr(0, end);
    header.remove_prefix(std::min(end + 1, header.size()));
    while (pair.starts_with(' ')) pair.remove_prefix(1);
    if (pair.size() > name.size() && pair.starts_with(name) && pair[name.size()] == '=')
      return pair.substr(name.size() + 1);
  }
  return std::nullopt;
}

Transport transport_of(std::string_view origin) {
  if (origin.starts_with("https://")) return Transport::https;
  const auto authority = authority_of(origin);
  return authority && is_loopback(*authority) ? Transport::loopback : Transport::insecure;
}

bool is_ours(std::string_view origin, const http::Request& request, std::string_view public_url) {
  if (origin == public_url) return true;
  const auto authority = authority_of(origin);
  const auto host = request.header("host");
  return authority && host && *authority == *host;
}

}  // namespace

std::optional<std::string> find_session_token(const http::Request& request) {
  const bool is_portal =
      request.header("x-postrider-app") == "portal" || request.path.starts_with("/portal/");
  return find_session_token(request, is_portal ? SessionKind::portal : SessionKind::console);
}

std::optional<std::string> find_session_token(const http::Request& request, SessionKind kind) {
  const std::string_view host = request.header("host").value_or("");
  for (const http::Field& field : request.fields) {
    if (!http::equals_ignoring_case(field.name, "cookie")) continue;
    auto token = cookie_of(field.value, cookie_name(kind, Transport::https));
    // Other hosts of the same site can set a name without the prefix, except for a loopback address.
    if (!token && is_loopback(host)) token = cookie_of(field.value, cookie_name(kind, Transport::loopback));
    if (token && is_token(*token)) return std::string(*token);
  }
  return std::nullopt;
}

Visit visit_of(const http::Request& request, std::string_view public_url) {
  const auto origin = request.header("origin");
  if (!origin) return {.is_same_origin = true, .transport = transport_of(public_url)};
  return {.is_same_origin = is_ours(*origin, request, public_url), .transport = transport_of(*origin)};
}

bool is_from_our_pages(const http::Request& request, std::string_view public_url) {
  const auto origin = request.header("origin");
  const auto site = request.header("sec-fetch-site");
  return origin && is_ours(*origin, request, public_url) && (!site || *site == "same-origin");
}

std::string set_cookie(SessionKind kind, Transport transport, std::string_view token,
                       std::chrono::seconds age) {
  CHECK(transport != Transport::insecure);
  std::string cookie = cookie_name(kind, transport) + "=" + std::string(token) +
                       "; Path=/; HttpOnly; SameSite=Strict; Max-Age=" + std::to_string(age.count());
  if (transport == Transport::https) cookie += "; Secure";
  return cookie;
}

std::string clear_cookie(SessionKind kind, Transport transport) {
  return set_cookie(kind, transport, "", std::chrono::seconds(0));
}

}  // namespace postrider::web
