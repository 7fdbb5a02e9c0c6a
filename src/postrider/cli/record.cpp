// One object for people: fields in groups, a line each, empty ones left out. Values are written as their
// names say (…_at is a time, …_ms a duration), so that every record reads alike.
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <sstream>

#include "postrider/cli/human.hpp"
#include "postrider/cli/output.hpp"

namespace postrider::cli {

namespace {

namespace json = boost::json;

bool is_empty(const json::value& value) {
  if (value.is_null()) return true;
  if (const auto* text = value.if_string()) return text->empty();
  if (const auto* array = value.if_array()) return array->empty();
  if (const auto* object = value.if_object())
    return std::all_of(object->begin(), object->end(),
                       [](const auto& member) { return is_empty(member.value()); });
  return false;
}

// "max_in_flight" → "Max in flight", "timeout_ms" → "Timeout", "tenant_id" → "Tenant".
std::string label_of(std::string_view field) {
  if (field == "id") return "ID";
  if (field == "url") return "URL";
  if (field == "give_up_seconds") return "Expires after";
  for (const std::string_view unit : {"_at", "_ms", "_us", "_seconds", "_id"})
    if (field.ends_with(unit)) field.remove_suffix(unit.size());
  std::string label = visible(field);
  std::replace(label.begin(), label.end(), '_', ' ');
  if (!label.empty() && label[0] >= 'a' && label[0] <= 'z') label[0] = static_cast<char>(label[0] - 32);
  return label;
}

std::string value_text(std::string_view field, const json::value& value, const View& view) {
  const auto time = value.is_string() ? base::parse_rfc3339(value.get_string()) : std::nullopt;
  if (time && (field.ends_with("_at") || field.ends_with("_since") || field == "since" || field == "until")) {
    const std::string age = age_text(*time, view.now);
    return time_text(*time) + " (" + (age.starts_with("in ") ? age : age + " ago") + ")";
  }
  if (field.ends_with("_ms")) return styled(value, Style::milliseconds, view);
  if (field.ends_with("_us")) return styled(value, Style::microseconds, view);
  if (field.ends_with("_seconds")) return styled(value, Style::seconds, view);
  if (field.ends_with("_bytes") || field.ends_with("bytes_max")) return styled(value, Style::bytes, view);
  if (field.ends_with("_rate")) return styled(value, Style::share, view);
  return cell_text(value);
}

// A nested value below its label: YAML, which needs no brackets.
std::string block_text(const json::value& value, size_t indent) {
  std::istringstream lines(yaml_text(value));
  std::string text;
  for (std::string line; std::getline(lines, line);) text += std::string(indent, ' ') + line + "\n";
  return text;
}

bool is_nested(const json::value& value) {
  if (value.is_object()) return true;
  const auto* array = value.if_array();
  return array && std::any_of(array->begin(), array->end(),
                              [](const json::value& item) { return item.is_object() || item.is_array(); });
}

std::string section_text(const std::string& title, const std::vector<std::string>& fields,
                         const json::object& object, const View& view) {
  size_t width = 0;
  for (const std::string& field : fields)
    if (!is_nested(object.at(field))) width = std::max(width, display_width(label_of(field)));
  const size_t indent = title.empty() ? 0 : 2;
  std::string text = title.empty() ? "" : title + "\n";
  for (const std::string& field : fields) {
    const json::value& value = object.at(field);
    std::string label = label_of(field);
    text.append(indent, ' ');
    if (is_nested(value)) {
      text += label + "\n" + block_text(value, indent + 2);
      continue;
    }
    label.append(std::max(width, display_width(label)) - display_width(label), ' ');
    text += label + "  " + value_text(field, value, view) + "\n";
  }
  return text;
}

}  // namespace

std::string record_text(const json::object& object, const Layout& layout, const View& view) {
  std::vector<std::string> named;
  std::string text;
  const auto add = [&](const std::string& title, const std::vector<std::string>& wanted) {
    std::vector<std::string> fields;
    for (const std::string& field : wanted) {
      const json::value* value = object.if_contains(field);
      if (value != nullptr && !is_empty(*value)) fields.push_back(field);
      named.push_back(field);
    }
    if (fields.empty() || title == "-") return;
    if (!text.empty()) text += "\n";
    text += section_text(title, fields, object, view);
  };
  for (const Section& section : layout) add(section.title, section.fields);
  std::vector<std::string> others;
  for (const auto& member : object)
    if (std::count(named.begin(), named.end(), std::string(member.key())) == 0)
      others.emplace_back(member.key());
  add(layout.empty() ? "" : "Other", others);
  return text;
}

}  // namespace postrider::cli
