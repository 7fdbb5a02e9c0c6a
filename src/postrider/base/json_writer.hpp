// Writes JSON objects and arrays. Values are escaped here; stored JSON is written unchanged.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/base/time.hpp"

namespace postrider::base {

class JsonObject {
 public:
  JsonObject& add(std::string_view name, std::string_view value);
  JsonObject& add(std::string_view name, const char* value) { return add(name, std::string_view(value)); }
  JsonObject& add(std::string_view name, const std::string& value) {
    return add(name, std::string_view(value));
  }
  JsonObject& add(std::string_view name, std::same_as<bool> auto value) {
    return raw(name, value ? "true" : "false");
  }
  JsonObject& add(std::string_view name, std::integral auto value)
    requires(!std::same_as<decltype(value), bool>)
  {
    return raw(name, std::to_string(value));
  }
  JsonObject& add(std::string_view name, double value);
  JsonObject& add(std::string_view name, Timestamp value);
  JsonObject& add(std::string_view name, const std::vector<std::string>& values);
  // null when there is none.
  template <class T>
  JsonObject& add(std::string_view name, const std::optional<T>& value) {
    return value ? add(name, *value) : raw(name, "null");
  }

  // Text that is JSON already.
  JsonObject& raw(std::string_view name, std::string_view json);
  JsonObject& raw_or_null(std::string_view name, const std::optional<std::string>& json) {
    return raw(name, json ? std::string_view(*json) : std::string_view("null"));
  }

  std::string text() const { return "{" + members_ + "}"; }
  const std::string& members() const { return members_; }  // without the braces

 private:
  void add_name(std::string_view name);

  std::string members_;
};

// A JSON array of texts that are JSON already.
std::string json_array(const std::vector<std::string>& items);
std::string json_array_of_strings(const std::vector<std::string>& items);

}  // namespace postrider::base
