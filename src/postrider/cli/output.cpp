#include "postrider/cli/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>

#include "postrider/cli/human.hpp"
#include "postrider/cli/terminal.hpp"

namespace postrider::cli {

namespace {

namespace json = boost::json;

const json::array& rows_of(const json::value& response) {
  if (const auto* array = response.if_array()) return *array;
  return response.at("data").as_array();
}

// Without an exponent, which Boost.JSON writes for every fraction; six decimals are enough for people.
std::string number_text(double value) {
  std::string text = fmt::format("{:.6f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

void put(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

std::string joined(const json::array& items) {
  std::string text;
  for (const json::value& item : items) text += (text.empty() ? "" : ", ") + cell_text(item);
  return text.empty() ? "-" : text;
}

std::string pairs(const json::object& object) {
  std::string text;
  for (const auto& member : object)
    if (!member.value().is_null())
      text += (text.empty() ? "" : " ") + visible(member.key()) + "=" + cell_text(member.value());
  return text.empty() ? "-" : text;
}

// The ID of a row for `-o name`.
std::string name_of(const json::value& row) {
  const json::object* object = row.if_object();
  for (const char* field : {"id", "name", "pattern", "delivery_id", "endpoint_id", "reason"})
    if (const json::value* value = object ? object->if_contains(field) : nullptr; value && value->is_string())
      return visible(value->get_string());
  return "";
}

}  // namespace

std::string visible(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // C1 controls are two bytes in UTF-8: C2 80 to C2 9F.
    const bool is_c1 = byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (is_c1) {
      out += fmt::format("\\u00{:02x}", static_cast<unsigned char>(text[++i]));
    } else if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += text[i];
    }
  }
  return out;
}

size_t display_width(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string shortened(const std::string& text, size_t width) {
  if (display_width(text) <= width) return text;
  size_t end = 0;
  for (size_t seen = 0; end < text.size(); ++end) {
    const bool is_start = (static_cast<unsigned char>(text[end]) & 0xC0) != 0x80;
    if (is_start && ++seen == width) break;
  }
  return text.substr(0, end) + "…";
}

std::string cell_text(const json::value& value) {
  if (value.is_null()) return "-";
  if (const auto* text = value.if_string()) return text->empty() ? "-" : visible(*text);
  if (value.is_bool()) return value.get_bool() ? "yes" : "no";
  if (value.is_double()) return number_text(value.get_double());
  if (const auto* array = value.if_array()) return joined(*array);
  if (const auto* object = value.if_object()) return pairs(*object);
  return visible(json::serialize(value));
}

std::string styled(const json::value& value, Style style, const View& view) {
  const bool is_number = value.is_number();
  const double number = is_number ? value.to_number<double>() : 0;
  const auto duration = [&](double microseconds) {
    return duration_text(std::chrono::microseconds(static_cast<int64_t>(microseconds)));
  };
  switch (style) {
    case Style::text:
    case Style::yes_no:
      return cell_text(value);
    case Style::id:
      return view.is_short() ? short_id(cell_text(value)) : cell_text(value);
    case Style::age:
    case Style::due:
    case Style::time: {
      const auto time = value.is_string() ? base::parse_rfc3339(value.get_string()) : std::nullopt;
      if (!time) return cell_text(value);
      if (style == Style::due) return *time <= view.now ? "due" : age_text(*time, view.now);
      return style == Style::age ? age_text(*time, view.now) : time_text(*time);
    }
    case Style::microseconds:
      return is_number ? duration(number) : "-";
    case Style::milliseconds:
      return is_number ? duration(number * 1e3) : "-";
    case Style::seconds:
      return is_number ? duration(number * 1e6) : "-";
    case Style::share:
      return is_number ? share_text(number) : "-";
    case Style::bytes:
      return is_number ? bytes_text(static_cast<int64_t>(number)) : "-";
  }
  return "";
}

View Output::view() const {
  return {.now = base::wall_now(), .columns = output_columns(), .is_wide = format_ == Format::wide};
}

void Output::document(const json::value& response) const {
  if (format_ == Format::json) return json(response);
  if (format_ == Format::yaml) return put(yaml_text(response));
  const json::object* object = response.if_object();
  const bool is_list =
      response.is_array() || (object && object->contains("data") && object->at("data").is_array());
  if (!is_list) return line(name_of(response));
  for (const json::value& row : rows_of(response)) line(name_of(row));
}

void Output::list(const json::value& response, const std::vector<Column>& columns,
                  std::string_view none) const {
  if (!is_for_people()) return document(response);
  if (rows_of(response).empty()) return note(none);
  put(table_text(rows_of(response), columns, view()));
}

void Output::record(const json::value& response, const Layout& layout) const {
  if (!is_for_people()) return document(response);
  if (response.is_object()) put(record_text(response.get_object(), layout, view()));
}

void Output::note(std::string_view sentence) const {
  if (!is_for_people()) return;
  std::fflush(stdout);  // in the order in which they were written, also into one file
  std::fprintf(stderr, "%s\n", std::string(sentence).c_str());
}

void Output::line(std::string_view text) const {
  put(std::string(text) + "\n");
}

void Output::json(const json::value& value) const {
  if (value.is_null()) return;
  put((format_ == Format::yaml ? yaml_text(value) : json::serialize(value) + "\n"));
}

}  // namespace postrider::cli
