#include "postrider/http/url.hpp"

#include <algorithm>
#include <charconv>

#include "postrider/base/text.hpp"

namespace postrider::http {

namespace {

using base::Failure;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f');
}
using base::lowered;

bool is_label(std::string_view label) {
  if (label.empty() || label.size() > 63 || label.front() == '-' || label.back() == '-') return false;
  return std::all_of(label.begin(), label.end(),
                     [](char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || c == '-' || c == '_'; });
}

bool is_dns_name(std::string_view name) {
  if (name.size() > 253) return false;
  while (true) {
    const size_t dot = name.find('.');
    if (!is_label(name.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    name.remove_prefix(dot + 1);
  }
}

// As browsers see it: a last label of digits only, or 0x and hex digits, makes the host an address of some
// form.
bool ends_in_number(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('.') + 1);
  if (last.empty()) return false;
  if (std::all_of(last.begin(), last.end(), is_digit)) return true;
  return last.starts_with("0x") && std::all_of(last.begin() + 2, last.end(), is_hex);
}

bool is_local_name(std::string_view name) {
  if (name.find('.') == std::string_view::npos) return true;
  for (const std::string_view suffix : {".localhost", ".local", ".internal", ".home.arpa"})
    if (name.ends_with(suffix)) return true;
  return name == "home.arpa";
}

std::optional<UrlError> read_host(std::string_view text, Url& url, std::string& host) {
  if (text.empty()) return UrlError::empty_host;
  if (text.front() == '[') {
    if (text.back() != ']') return UrlError::bad_address;
    const std::string_view inside = text.substr(1, text.size() - 2);
    url.address = inside.find(':') == std::string_view::npos ? std::nullopt : IpAddress::parse(inside);
    if (!url.address) return UrlError::bad_address;
  } else {
    host = lowered(text);
    if (host.find(':') != std::string::npos) return UrlError::bad_address;
    url.address = IpAddress::parse(host);
  }
  if (url.address) {
    url.host_kind = HostKind::address;
    host = url.address->to_string();
    return std::nullopt;
  }
  const bool has_dot = host.ends_with('.');
  if (has_dot) host.pop_back();
  if (host.empty()) return UrlError::empty_host;
  if (ends_in_number(host)) return UrlError::bad_address;
  if (!is_dns_name(host)) return UrlError::bad_host;
  url.host_kind = is_local_name(host) ? HostKind::local_name : HostKind::name;
  return std::nullopt;
}

std::optional<uint16_t> read_port(std::string_view digits) {
  if (digits.empty() || digits.size() > 5 || digits.front() == '0') return std::nullopt;
  uint32_t port = 0;
  for (const char c : digits) {
    if (!is_digit(c)) return std::nullopt;
    port = port * 10 + static_cast<uint32_t>(c - '0');
  }
  if (port > 65535) return std::nullopt;
  return static_cast<uint16_t>(port);
}

std::optional<UrlError> read_authority(std::string_view text, Url& url, std::string& host) {
  if (text.find('@') != std::string_view::npos) return UrlError::has_userinfo;
  std::string_view given = text;
  url.port = url.is_https ? 443 : 80;
  const size_t colon = text.rfind(':');
  const size_t bracket = text.rfind(']');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    given = text.substr(0, colon);
    if (given.find(':') != std::string_view::npos && given.front() != '[') return UrlError::bad_address;
    if (given.empty()) return UrlError::empty_host;
    const auto port = read_port(text.substr(colon + 1));
    if (!port) return UrlError::bad_port;
    url.port = *port;
  }
  return read_host(given, url, host);
}

size_t scheme_bytes(const Url& url) {
  return std::string_view(url.is_https ? "https://" : "http://").size();
}

}  // namespace

std::string_view describe(UrlError error) {
  switch (error) {
    case UrlError::too_long:
      return "The URL is longer than 2048 characters.";
    case UrlError::bad_character:
      return "The URL contains a space, a backslash, a control character or a letter outside ASCII; "
             "write international host names in punycode (xn--...) and escape other characters as %XX.";
    case UrlError::bad_scheme:
      return "The URL must begin with https:// (or http:// where that is allowed).";
    case UrlError::has_userinfo:
      return "The URL must not contain a user name or password (nothing before an @).";
    case UrlError::has_fragment:
      return "The URL must not contain a fragment (#...): it would never be sent.";
    case UrlError::empty_host:
      return "The URL has no host name.";
    case UrlError::bad_host:
      return "The host is not a valid DNS name.";
    case UrlError::bad_address:
      return "The host looks like an IP address but is not written as one: use four decimal numbers "
             "(203.0.113.7) or an IPv6 address in brackets.";
    case UrlError::bad_port:
      return "The port must be a number from 1 to 65535.";
  }
  return "The URL is not valid.";
}

base::Result<Url, UrlError> parse_url(std::string_view text) {
  if (text.size() > kUrlBytesMax) return Failure{UrlError::too_long};
  for (const char c : text)
    if (c <= ' ' || c >= 0x7f || c == '\\') return Failure{UrlError::bad_character};

  Url url;
  const size_t scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos) return Failure{UrlError::bad_scheme};
  const std::string scheme = lowered(text.substr(0, scheme_end));
  if (scheme != "https" && scheme != "http") return Failure{UrlError::bad_scheme};
  url.is_https = scheme == "https";
  text.remove_prefix(scheme_end + 3);

  if (text.find('#') != std::string_view::npos) return Failure{UrlError::has_fragment};
  const size_t authority_end = std::min(text.find_first_of("/?"), text.size());
  std::string host;
  if (const auto error = read_authority(text.substr(0, authority_end), url, host)) return Failure{*error};

  url.target = text.substr(authority_end);
  if (!url.target.starts_with('/')) url.target.insert(0, "/");
  if (url.address && url.address->is_v6) host = "[" + host + "]";
  url.origin = scheme + "://" + host + ":" + std::to_string(url.port);
  return url;
}

std::string_view Url::host() const {
  std::string_view host = origin;
  host = host.substr(0, host.rfind(':')).substr(scheme_bytes(*this));
  return address && address->is_v6 ? host.substr(1, host.size() - 2) : host;
}

std::string_view Url::authority() const {
  const std::string_view whole = origin;
  const bool is_default_port = port == (is_https ? 443 : 80);
  return (is_default_port ? whole.substr(0, whole.rfind(':')) : whole).substr(scheme_bytes(*this));
}

}  // namespace postrider::http
