#include "postrider/base/json_writer.hpp"

#include <fmt/format.h>

#include "postrider/base/encoding.hpp"

namespace postrider::base {

JsonObject& JsonObject::add(std::string_view name, std::string_view value) {
  add_name(name);
  members_ += '"';
  append_json_escaped(members_, value);
  members_ += '"';
  return *this;
}

JsonObject& JsonObject::add(std::string_view name, double value) {
  return raw(name, fmt::format("{}", value));
}

JsonObject& JsonObject::add(std::string_view name, Timestamp value) {
  return add(name, to_rfc3339(value));
}

JsonObject& JsonObject::add(std::string_view name, const std::vector<std::string>& values) {
  return raw(name, json_array_of_strings(values));
}

JsonObject& JsonObject::raw(std::string_view name, std::string_view json) {
  add_name(name);
  members_ += json;
  return *this;
}

void JsonObject::add_name(std::string_view name) {
  members_ += members_.empty() ? "\"" : ",\"";
  append_json_escaped(members_, name);
  members_ += "\":";
}

std::string json_array(const std::vector<std::string>& items) {
  size_t bytes = 2;
  for (const auto& item : items) bytes += item.size() + 1;
  std::string text;
  text.reserve(bytes);
  text += '[';
  for (const auto& item : items) {
    if (text.size() > 1) text += ',';
    text += item;
  }
  text += ']';
  return text;
}

std::string json_array_of_strings(const std::vector<std::string>& items) {
  std::vector<std::string> quoted;
  quoted.reserve(items.size());
  for (const auto& item : items) quoted.push_back(json_quoted(item));
  return json_array(quoted);
}

}  // namespace postrider::base
