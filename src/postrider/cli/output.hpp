// What commands print: tables and records for people, JSON for programs. Whatever comes from a server is
// printed without control characters, so that no name can drive the terminal.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace postrider::cli {

// A column of a table: the value at `pointer` in each row, cut when it is long unless it is wanted whole.
struct Column {
  std::string title;
  std::string pointer;
  bool is_whole = false;
};

class Output {
 public:
  explicit Output(bool as_json) : as_json_(as_json) {}

  // {data: […]} or an array.
  void list(const boost::json::value& answer, const std::vector<Column>& columns) const;
  // One object, a line per field; nested values as JSON.
  void record(const boost::json::value& answer) const;
  // A sentence for people, to standard error; nothing with --json.
  void note(std::string_view sentence) const;
  // A line of the result itself, as it is.
  void line(std::string_view text) const;
  void json(const boost::json::value& value) const;

  bool as_json() const { return as_json_; }

 private:
  bool as_json_;
};

// As a cell shows it: texts plain, null as "-", arrays of texts joined, fractions without an exponent, other
// values as JSON; control characters escaped.
std::string cell_text(const boost::json::value& value);
std::string visible(std::string_view text);
// Columns that this many terminal cells fill; wide characters are counted as one.
size_t display_width(std::string_view text);
std::string table_text(const boost::json::array& rows, const std::vector<Column>& columns);
std::string record_text(const boost::json::object& object);

}  // namespace postrider::cli
