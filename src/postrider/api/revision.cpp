#include "postrider/api/revision.hpp"

#include <charconv>

namespace postrider::api {

namespace {

constexpr int32_t kNoRevision = -1;

}  // namespace

std::string etag(int32_t revision) {
  return "\"r" + std::to_string(revision) + "\"";
}

std::optional<int32_t> if_match(const http::Request& request) {
  const auto field = request.header("if-match");
  if (!field || *field == "*") return std::nullopt;
  std::string_view tag = *field;
  if (tag.size() < 4 || !tag.starts_with("\"r") || !tag.ends_with('"')) return kNoRevision;
  tag = tag.substr(2, tag.size() - 3);
  int32_t revision = kNoRevision;
  const auto [end, error] = std::from_chars(tag.data(), tag.data() + tag.size(), revision);
  return error == std::errc() && end == tag.data() + tag.size() ? revision : kNoRevision;
}

}  // namespace postrider::api
