// JSON values as YAML 1.2. Strings are plain where that cannot be misread, otherwise quoted as in JSON.
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "postrider/cli/output.hpp"

namespace postrider::cli {

namespace {

namespace json = boost::json;

bool is_plain(std::string_view text) {
  static constexpr std::string_view kWords[] = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"};
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (std::find(std::begin(kWords), std::end(kWords), lower) != std::end(kWords)) return false;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto is_safe = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') ||
           std::string_view("_-./ ").find(c) != std::string_view::npos;
  };
  return !text.empty() && (is_letter(text[0]) || text[0] == '_') && text.back() != ' ' &&
         std::all_of(text.begin(), text.end(), is_safe);
}

std::string scalar(const json::value& value) {
  if (value.is_double()) return cell_text(value);
  if (value.is_string() && is_plain(value.get_string())) return std::string(value.get_string());
  // Control characters beyond ASCII are escaped too: JSON leaves them, and a terminal would obey them.
  return visible(json::serialize(value));
}

void write(std::string& out, const json::value& value, size_t indent);

bool is_block(const json::value& value) {
  if (const auto* array = value.if_array()) return !array->empty();
  if (const auto* object = value.if_object()) return !object->empty();
  return false;
}

void write_object(std::string& out, const json::object& object, size_t indent, bool continues_line) {
  for (const auto& member : object) {
    if (!continues_line) out.append(indent, ' ');
    continues_line = false;
    out += scalar(json::value(member.key())) + ":";
    const bool is_array = member.value().is_array();
    if (!is_block(member.value())) {
      out += " " + scalar(member.value()) + "\n";
    } else {
      out += "\n";
      write(out, member.value(), is_array ? indent : indent + 2);
    }
  }
}

void write(std::string& out, const json::value& value, size_t indent) {
  if (const auto* object = value.if_object(); object && !object->empty())
    return write_object(out, *object, indent, false);
  const auto* array = value.if_array();
  if (!array || array->empty()) {
    out.append(indent, ' ') += scalar(value) + "\n";
    return;
  }
  for (const json::value& item : *array) {
    out.append(indent, ' ') += "-";
    if (const auto* object = item.if_object(); object && !object->empty()) {
      out += " ";
      write_object(out, *object, indent + 2, true);
    } else if (is_block(item)) {
      out += "\n";
      write(out, item, indent + 2);
    } else {
      out += " " + scalar(item) + "\n";
    }
  }
}

}  // namespace

std::string yaml_text(const json::value& value) {
  std::string out;
  write(out, value, 0);
  return out;
}

}  // namespace postrider::cli
