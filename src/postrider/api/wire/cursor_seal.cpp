#include "postrider/api/wire/cursor_seal.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "postrider/base/encoding.hpp"

namespace postrider::api {

namespace {

constexpr std::string_view kPrefix = "c2_";
constexpr size_t kSealedMax = 2'048;
constexpr std::string_view kMember = ",\"next_cursor\":\"";
constexpr std::string_view kEnd = "\"}";

// No two lists of parts look the same.
void append(std::string& text, std::string_view part) {
  text += std::to_string(part.size());
  text += ':';
  text += part;
}

}  // namespace

CursorSeal CursorSeal::of(const crypto::MasterKeys& keys, const http::Request& request,
                          const std::optional<model::TenantId>& bound_to) {
  std::vector<std::pair<std::string_view, std::string_view>> filters;
  for (const auto& parameter : request.query)
    if (parameter.name != "cursor" && parameter.name != "limit")
      filters.emplace_back(parameter.name, parameter.value);
  std::sort(filters.begin(), filters.end());
  CursorSeal seal{keys, "cursor/"};
  append(seal.place, bound_to ? *bound_to : "");
  append(seal.place, request.path);
  for (const auto& [name, value] : filters) {
    append(seal.place, name);
    append(seal.place, value);
  }
  return seal;
}

std::string CursorSeal::seal(std::string_view cursor) const {
  return std::string(kPrefix) + base::hex_encode(keys.seal(crypto::Purpose::cursor, cursor, place));
}

std::optional<std::string> CursorSeal::open(std::string_view sealed) const {
  if (!sealed.starts_with(kPrefix) || sealed.size() > kSealedMax) return std::nullopt;
  const auto bytes = base::hex_decode(sealed.substr(kPrefix.size()));
  if (!bytes) return std::nullopt;
  auto cursor = keys.open(crypto::Purpose::cursor, *bytes, place);
  if (!cursor) return std::nullopt;
  return std::move(*cursor);
}

void CursorSeal::open_cursor(http::Request& request) const {
  for (auto& parameter : request.query)
    if (parameter.name == "cursor") parameter.value = open(parameter.value).value_or("");
}

void CursorSeal::seal_next_cursor(http::Response& response) const {
  std::string& body = response.body;
  if (response.status != 200 || !body.ends_with(kEnd)) return;
  const size_t end = body.size() - kEnd.size();
  const size_t at = body.rfind(kMember);
  if (at == std::string::npos) return;
  const size_t begin = at + kMember.size();
  // The last member of the outermost object: nothing but the cursor's own letters is behind it.
  const std::string_view cursor = std::string_view(body).substr(begin, end - begin);
  const auto is_word = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  if (!std::all_of(cursor.begin(), cursor.end(), is_word)) return;
  const std::string sealed = seal(cursor);
  body.replace(begin, end - begin, sealed);
}

}  // namespace postrider::api
