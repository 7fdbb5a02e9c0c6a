#include "postrider/web/assets.hpp"

#include <algorithm>
#include <optional>

#include "postrider/base/check.hpp"
#include "postrider/http/request_grammar.hpp"

namespace postrider::web {

namespace {

using http::Request;
using http::Response;

// Only files of this server, nothing inline, and no text ever becomes markup or a script.
std::string policy(std::string_view frame_ancestors) {
  return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
         "base-uri 'none'; form-action 'none'; frame-ancestors " +
         std::string(frame_ancestors) + "; require-trusted-types-for 'script'; trusted-types 'none'";
}

// True if a coding is in Accept-Encoding, with a weight above zero.
bool accepts(const Request& request, std::string_view coding) {
  std::string_view list = request.header("accept-encoding").value_or("");
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    std::string_view element = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    while (element.starts_with(' ')) element.remove_prefix(1);
    if (!http::equals_ignoring_case(element.substr(0, element.find_first_of("; \t")), coding)) continue;
    const size_t weight = element.find("q=");
    return weight == std::string_view::npos ||
           element.find_first_not_of("0. \t", weight + 2) != std::string_view::npos;
  }
  return false;
}

void set_body(Response& response, const Request& request, const Asset& asset) {
  response.content_type = asset.content_type;
  if (!asset.brotli.empty() && accepts(request, "br")) {
    response.header("content-encoding", "br");
    response.body = asset.brotli;
  } else if (!asset.gzip.empty() && accepts(request, "gzip")) {
    response.header("content-encoding", "gzip");
    response.body = asset.gzip;
  } else {
    response.header("content-encoding", "identity");  // as it is: not compressed again
    response.body = asset.identity;
  }
}

bool has(const Request& request, const Asset& asset) {
  const auto known = request.header("if-none-match");
  return known && known->find(asset.etag) != std::string_view::npos;
}

Response respond(const Request& request, const Asset& asset) {
  Response response;
  response.header("etag", std::string(asset.etag));
  response.header("vary", "accept-encoding");
  response.header("x-content-type-options", "nosniff");
  response.header("referrer-policy", "no-referrer");
  response.header("cross-origin-resource-policy", "same-origin");
  if (has(request, asset))
    response.status = 304;
  else
    set_body(response, request, asset);
  return response;
}

}  // namespace

const Asset* find_asset(std::string_view path) {
  const std::span<const Asset> all = assets();
  const auto found =
      std::lower_bound(all.begin(), all.end(), path,
                       [](const Asset& asset, std::string_view wanted) { return asset.path < wanted; });
  return found != all.end() && found->path == path ? &*found : nullptr;
}

Response shell(const Request& request, std::string_view path, std::string_view frame_ancestors) {
  const Asset* page = find_asset(path);
  CHECK(page);
  Response response = respond(request, *page);
  response.header("cache-control", "no-cache");
  response.header("content-security-policy", policy(frame_ancestors));
  response.header("permissions-policy", "clipboard-write=(self), camera=(), geolocation=(), microphone=()");
  if (frame_ancestors == "'none'") response.header("cross-origin-opener-policy", "same-origin");
  return response;
}

std::optional<Response> file(const Request& request, std::string_view path) {
  const Asset* asset = find_asset(path);
  if (!asset || path.ends_with(".html")) return std::nullopt;
  Response response = respond(request, *asset);
  response.header("cache-control", "public, max-age=31536000, immutable");
  return response;
}

}  // namespace postrider::web
