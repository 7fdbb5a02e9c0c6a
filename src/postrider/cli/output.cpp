#include "postrider/cli/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>

namespace postrider::cli {

namespace {

namespace json = boost::json;

constexpr size_t kCellMax = 60;
constexpr std::string_view kGap = "  ";

// Cut at a whole character.
std::string shortened(std::string text) {
  if (display_width(text) <= kCellMax) return text;
  size_t end = 0;
  for (size_t width = 0; end < text.size(); ++end) {
    const bool is_start = (static_cast<unsigned char>(text[end]) & 0xC0) != 0x80;
    if (is_start && ++width == kCellMax) break;
  }
  return text.substr(0, end) + "…";
}

const json::array& rows_of(const json::value& answer) {
  if (const auto* array = answer.if_array()) return *array;
  return answer.at("data").as_array();
}

// Never with an exponent, which JSON has for every fraction; six places are enough for people.
std::string number_text(double value) {
  std::string text = fmt::format("{:.6f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

void put(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
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

std::string cell_text(const json::value& value) {
  if (value.is_null()) return "-";
  if (const auto* text = value.if_string()) return text->empty() ? "-" : visible(*text);
  if (value.is_double()) return number_text(value.get_double());
  const auto* array = value.if_array();
  const auto is_text = [](const json::value& item) { return item.is_string(); };
  if (!array || !std::all_of(array->begin(), array->end(), is_text)) return visible(json::serialize(value));
  std::string joined;
  for (const json::value& item : *array) {
    if (!joined.empty()) joined += ", ";
    joined += visible(item.get_string());
  }
  return joined.empty() ? "-" : joined;
}

std::string table_text(const json::array& rows, const std::vector<Column>& columns) {
  std::vector<std::vector<std::string>> cells(1);
  for (const Column& column : columns) cells[0].push_back(column.title);
  for (const json::value& row : rows) {
    cells.emplace_back();
    for (const Column& column : columns) {
      json::error_code error;
      const json::value* value = row.find_pointer(column.pointer, error);
      std::string text = value ? cell_text(*value) : "-";
      cells.back().push_back(column.is_whole ? std::move(text) : shortened(std::move(text)));
    }
  }
  std::vector<size_t> widths(columns.size());
  for (const auto& row : cells)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  std::string text;
  for (const auto& row : cells) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - display_width(row[i]), ' ').append(kGap);
    }
    text += line + "\n";
  }
  return text;
}

std::string record_text(const json::object& object) {
  size_t width = 0;
  for (const auto& member : object) width = std::max(width, display_width(visible(member.key())));
  std::string text;
  for (const auto& member : object) {
    const std::string name = visible(member.key());
    text += name + std::string(width - display_width(name), ' ') + "  " + cell_text(member.value()) + "\n";
  }
  return text;
}

void Output::list(const json::value& answer, const std::vector<Column>& columns) const {
  if (as_json_) return json(answer);
  if (rows_of(answer).empty()) return note("Nothing here.");
  put(table_text(rows_of(answer), columns));
}

void Output::record(const json::value& answer) const {
  if (as_json_) return json(answer);
  if (answer.is_object()) put(record_text(answer.get_object()));
}

void Output::note(std::string_view sentence) const {
  if (!as_json_) std::fprintf(stderr, "%s\n", std::string(sentence).c_str());
}

void Output::line(std::string_view text) const {
  put(std::string(text) + "\n");
}

void Output::json(const json::value& value) const {
  if (!value.is_null()) put(json::serialize(value) + "\n");
}

}  // namespace postrider::cli
