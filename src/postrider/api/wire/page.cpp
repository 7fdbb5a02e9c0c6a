#include "postrider/api/wire/page.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "postrider/api/wire/json_writer.hpp"
#include "postrider/base/encoding.hpp"
#include "postrider/model/event_pattern.hpp"
#include "postrider/model/event_type.hpp"

namespace postrider::api {

namespace {

constexpr std::string_view kCursorPrefix = "c1_";
constexpr size_t kCursorMax = 512;

}  // namespace

std::optional<std::string> Query::value(std::string_view name) {
  known_.emplace_back(name);
  std::optional<std::string> found;
  for (const auto& parameter : request_.query) {
    if (parameter.name != name) continue;
    if (found) reject(name, "must be given only once");
    found = parameter.value;
  }
  return found;
}

std::optional<base::Timestamp> Query::time(std::string_view name) {
  const auto text = value(name);
  if (!text) return std::nullopt;
  const auto time = base::parse_rfc3339(*text);
  if (!time) reject(name, time_rule);
  return time;
}

Query::Range Query::range() {
  const Range range{time("since"), time("until")};
  if (range.since && range.until && *range.until <= *range.since) reject("until", "must be after `since`");
  return range;
}

std::optional<std::string> Query::pattern(std::string_view name) {
  auto text = value(name);
  if (text && !model::is_pattern(*text)) reject(name, model::pattern_rule);
  return text;
}

int Query::limit() {
  const auto text = value("limit");
  if (!text) return page_limit_default;
  int number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error == std::errc() && end == text->data() + text->size() && number >= 1 && number <= page_limit_max)
    return number;
  reject("limit", "must be a number from 1 to " + std::to_string(page_limit_max));
  return page_limit_default;
}

std::string Query::after() {
  const auto text = value("cursor");
  if (!text) return {};
  std::optional<std::string> key;
  if (text->starts_with(kCursorPrefix) && text->size() <= kCursorMax)
    key = base::hex_decode(std::string_view(*text).substr(kCursorPrefix.size()));
  const auto is_plain = [](char c) { return c > 0x20 && c < 0x7F; };
  if (key && !key->empty() && std::all_of(key->begin(), key->end(), is_plain)) return *key;
  reject("cursor", "invalid cursor");
  return {};
}

void Query::reject(std::string_view name, std::string detail) {
  problems_.push_back({std::string(name), std::move(detail)});
}

FieldProblems Query::finish() {
  for (const auto& parameter : request_.query)
    if (std::find(known_.begin(), known_.end(), parameter.name) == known_.end())
      reject(parameter.name, "unknown parameter");
  return std::move(problems_);
}

std::string make_cursor(std::string_view last_key) {
  return std::string(kCursorPrefix) + base::hex_encode(last_key);
}

http::Response page(const std::vector<std::string>& items, const std::optional<std::string>& next) {
  JsonObject document;
  document.raw("data", json_array(items));
  if (next) document.add("next_cursor", make_cursor(*next));
  return http::Response::json(200, document.text());
}

http::Response page(std::vector<PageRow> rows, int limit) {
  std::optional<std::string> next;
  if (rows.size() > static_cast<size_t>(limit)) {
    rows.resize(static_cast<size_t>(limit));
    next = rows.back().key;
  }
  std::vector<std::string> items;
  for (auto& row : rows) items.push_back(std::move(row.json));
  return page(items, next);
}

}  // namespace postrider::api
