// The output of commands: tables and records for people, JSON, YAML or IDs for programs. Text from a server
// is printed without control characters, so that no name can manipulate the terminal.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/base/time.hpp"

namespace postrider::cli {

enum class Format { table, wide, json, yaml, name };

// The format of a value for people.
enum class Style { text, id, age, due, time, milliseconds, microseconds, seconds, share, bytes, yes_no };

// A column of a table: the value at `pointer` in each row.
struct Column {
  enum class Shown {
    always,
    if_any,   // on a terminal only if a row has a value
    if_room,  // on a terminal only if the table fits with it
    wide,     // only with -o wide
  };
  std::string title;
  std::string pointer;
  Style style = Style::text;
  Shown shown = Shown::always;
};

// The place where a table or a record is shown.
struct View {
  base::Timestamp now;
  size_t columns = 0;  // 0: lines may have any length, and nothing is shortened
  bool is_wide = false;

  bool is_short() const { return columns > 0 && !is_wide; }
};

// The fields of a record in groups; a field that no group names comes last, so that none is lost. Fields that
// are null or empty are left out.
struct Section {
  std::string title;  // empty: without a title; "-": not shown to people
  std::vector<std::string> fields;
};
using Layout = std::vector<Section>;

class Output {
 public:
  explicit Output(Format format) : format_(format) {}

  // {data: […]} or an array. `none` is the sentence for an empty list.
  void list(const boost::json::value& response, const std::vector<Column>& columns,
            std::string_view none = "Nothing found.") const;
  void record(const boost::json::value& response, const Layout& layout = {}) const;
  // A sentence for people, to standard error; nothing with another format.
  void note(std::string_view sentence) const;
  // A line of the result itself, unchanged.
  void line(std::string_view text) const;
  void json(const boost::json::value& value) const;

  bool is_for_people() const { return format_ == Format::table || format_ == Format::wide; }
  Format format() const { return format_; }
  View view() const;

 private:
  void document(const boost::json::value& response) const;

  Format format_;
};

std::string visible(std::string_view text);
// Terminal columns that the text fills; wide characters are counted as one.
size_t display_width(std::string_view text);
// At most `width` columns, cut between characters; a text that was cut ends in "…".
std::string shortened(const std::string& text, size_t width);

// Texts plain, null as "-", arrays joined, fractions without an exponent, objects as name=value.
std::string cell_text(const boost::json::value& value);
std::string styled(const boost::json::value& value, Style style, const View& view);
std::string table_text(const boost::json::array& rows, const std::vector<Column>& columns, const View& view);
std::string record_text(const boost::json::object& object, const Layout& layout, const View& view);
std::string yaml_text(const boost::json::value& value);

}  // namespace postrider::cli
