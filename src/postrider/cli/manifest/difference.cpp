#include "postrider/cli/manifest/difference.hpp"

#include <algorithm>
#include <boost/json/array.hpp>

namespace postrider::cli {

namespace {

namespace json = boost::json;

constexpr std::string_view kMasked = "***";

bool is_same(const json::value& current, const json::value& wanted);

bool is_texts(const json::array& array) {
  return std::all_of(array.begin(), array.end(), [](const json::value& item) { return item.is_string(); });
}

std::vector<std::string_view> sorted_texts(const json::array& array) {
  std::vector<std::string_view> texts;
  for (const json::value& item : array) texts.emplace_back(item.get_string());
  std::sort(texts.begin(), texts.end());
  return texts;
}

bool is_same_array(const json::array& current, const json::array& wanted) {
  if (current.size() != wanted.size()) return false;
  if (is_texts(current) && is_texts(wanted)) return sorted_texts(current) == sorted_texts(wanted);
  return std::equal(current.begin(), current.end(), wanted.begin(), is_same);
}

// Members that the API adds are null if they were not given.
bool is_same_object(const json::object& current, const json::object& wanted) {
  for (const auto& member : wanted) {
    const auto* found = current.if_contains(member.key());
    if (!is_same(found ? *found : json::value(), member.value())) return false;
  }
  return std::all_of(current.begin(), current.end(), [&](const auto& member) {
    return member.value().is_null() || wanted.contains(member.key());
  });
}

bool is_same(const json::value& current, const json::value& wanted) {
  if (current.is_string() && current.get_string() == kMasked) return wanted.is_string();
  if (current.is_number() && wanted.is_number())
    return current.to_number<double>() == wanted.to_number<double>();
  if (current.is_array() && wanted.is_array()) return is_same_array(current.get_array(), wanted.get_array());
  if (current.is_object() && wanted.is_object())
    return is_same_object(current.get_object(), wanted.get_object());
  return current == wanted;
}

}  // namespace

std::vector<Change> difference(const json::object& current, const json::object& wanted) {
  std::vector<Change> changes;
  for (const auto& member : wanted) {
    const auto* found = current.if_contains(member.key());
    const json::value before = found ? *found : json::value();
    if (!is_same(before, member.value()))
      changes.push_back({std::string(member.key()), before, member.value()});
  }
  return changes;
}

}  // namespace postrider::cli
