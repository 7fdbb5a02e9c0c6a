#include "postrider/api/wire/conditional.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "postrider/base/encoding.hpp"
#include "postrider/crypto/digest.hpp"

namespace postrider::api {

namespace {

constexpr size_t kHashBytes = 12;

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

// The elements of all fields of that name. Our tags contain no comma.
std::vector<std::string_view> list_elements(const http::Request& request, std::string_view lower_name) {
  const auto is_same_letter = [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a + ('a' - 'A')) : a) == b;
  };
  std::vector<std::string_view> elements;
  for (const auto& field : request.fields) {
    if (!std::equal(field.name.begin(), field.name.end(), lower_name.begin(), lower_name.end(),
                    is_same_letter))
      continue;
    for (std::string_view rest = field.value; !rest.empty();) {
      const size_t end = std::min(rest.find(','), rest.size());
      elements.push_back(trimmed(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return elements;
}

std::optional<int64_t> revision_of(std::string_view tag) {
  if (!tag.starts_with("\"r") || !tag.ends_with('"')) return std::nullopt;
  int64_t revision = 0;
  const char* begin = tag.data() + 2;
  const auto [end, error] = std::from_chars(begin, tag.data() + tag.size(), revision);
  if (error != std::errc() || end == begin || (*end != '-' && *end != '"')) return std::nullopt;
  return revision;
}

}  // namespace

void add_etag(http::Response& response, int64_t revision) {
  const crypto::Digest256 hash = crypto::sha256(response.body);
  response.header("etag", "\"r" + std::to_string(revision) + "-" +
                              base::hex_encode(hash.view().substr(0, kHashBytes)) + "\"");
}

registry::Precondition read_if_match(const http::Request& request) {
  registry::Precondition condition;
  for (const std::string_view tag : list_elements(request, "if-match")) {
    condition.is_set = true;
    if (tag == "*") condition.must_exist = true;
    if (const auto revision = revision_of(tag)) condition.revisions.push_back(*revision);
  }
  return condition;
}

void drop_body_if_known(http::Response& response, const http::Request& request) {
  if (response.status != 200 || (request.method != http::Method::get && request.method != http::Method::head))
    return;
  const auto etag = std::find_if(response.headers.begin(), response.headers.end(),
                                 [](const auto& header) { return header.first == "etag"; });
  if (etag == response.headers.end()) return;
  for (std::string_view tag : list_elements(request, "if-none-match")) {
    if (tag.starts_with("W/")) tag.remove_prefix(2);
    if (tag != etag->second && tag != "*") continue;
    response.status = 304;
    response.body.clear();
    response.content_type.clear();
    return;
  }
}

}  // namespace postrider::api
