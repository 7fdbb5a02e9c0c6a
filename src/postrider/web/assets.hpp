// The files of the console and the portal, embedded in the binary by tools/embed_assets.py.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "postrider/http/request.hpp"
#include "postrider/http/response.hpp"

namespace postrider::web {

struct Asset {
  std::string_view path;  // "console/console.html", "console/assets/main-Bx1.js"
  std::string_view content_type;
  std::string_view etag;
  std::string_view identity, gzip, brotli;  // compressed ones are empty if they are not smaller
};

// Sorted by path.
std::span<const Asset> assets();
const Asset* find_asset(std::string_view path);

// The page that every address of an app shows: not cached without asking. 304 if the browser has it.
http::Response shell(const http::Request& request, std::string_view path, std::string_view frame_ancestors);

// A file with a hash in its name: cached forever. Null response: there is none, 404.
std::optional<http::Response> file(const http::Request& request, std::string_view path);

}  // namespace postrider::web
