// Tables that fit the terminal.
#include <algorithm>
#include <boost/json/array.hpp>

#include "postrider/cli/output.hpp"

namespace postrider::cli {

namespace {

namespace json = boost::json;

constexpr std::string_view kGap = "  ";
constexpr size_t kCutTextMin = 8, kCutIdMin = 12;

struct TableColumn {
  std::string title;
  Style style;
  Column::Shown shown;
  bool is_first;  // names the row, and may be copied
  std::vector<std::string> cells = {};
  size_t width = 0;

  bool is_empty() const {
    return std::all_of(cells.begin(), cells.end(), [](const std::string& cell) { return cell == "-"; });
  }
  // Columns that may be cut when the table is too wide; numbers, times and statuses are short and stay whole.
  size_t width_min() const {
    if (is_first && style == Style::id) return width;
    if (style == Style::text) return std::min(width, std::max(kCutTextMin, display_width(title)));
    return style == Style::id ? std::min(width, kCutIdMin) : width;
  }
};

std::vector<TableColumn> fill(const json::array& rows, const std::vector<Column>& columns, const View& view) {
  std::vector<TableColumn> filled;
  for (const Column& column : columns) {
    if (column.shown == Column::Shown::wide && !view.is_wide) continue;
    TableColumn made{column.title, column.style, column.shown, filled.empty()};
    made.width = display_width(column.title);
    for (const json::value& row : rows) {
      json::error_code error;
      const json::value* value = row.find_pointer(column.pointer, error);
      made.cells.push_back(value ? styled(*value, column.style, view) : "-");
      made.width = std::max(made.width, display_width(made.cells.back()));
    }
    if (column.shown == Column::Shown::if_any && view.is_short() && made.is_empty()) continue;
    filled.push_back(std::move(made));
  }
  return filled;
}

size_t total_width(const std::vector<TableColumn>& columns, bool is_smallest) {
  size_t total = kGap.size() * (columns.empty() ? 0 : columns.size() - 1);
  for (const TableColumn& column : columns) total += is_smallest ? column.width_min() : column.width;
  return total;
}

// Leaves out columns that are only shown if there is room, the last one first.
void drop(std::vector<TableColumn>& columns, size_t width) {
  for (size_t i = columns.size(); i-- > 0 && total_width(columns, true) > width;)
    if (columns[i].shown == Column::Shown::if_room) columns.erase(columns.begin() + static_cast<long>(i));
}

// Takes from the widest column until the table fits or nothing more can be cut.
void fit(std::vector<TableColumn>& columns, size_t width) {
  size_t total = total_width(columns, false);
  std::vector<size_t> smallest;
  for (const TableColumn& column : columns) smallest.push_back(column.width_min());
  for (; total > width; --total) {
    size_t widest = columns.size();
    for (size_t i = 0; i < columns.size(); ++i)
      if (columns[i].width > smallest[i] &&
          (widest == columns.size() || columns[i].width > columns[widest].width))
        widest = i;
    if (widest == columns.size()) return;
    --columns[widest].width;
  }
}

std::string line_of(const std::vector<TableColumn>& columns, size_t row, bool is_title) {
  std::string line;
  for (const TableColumn& column : columns) {
    const std::string cell = shortened(is_title ? column.title : column.cells[row], column.width);
    line += cell;
    if (&column != &columns.back()) line.append(column.width - display_width(cell), ' ').append(kGap);
  }
  return line;
}

}  // namespace

std::string table_text(const json::array& rows, const std::vector<Column>& columns, const View& view) {
  std::vector<TableColumn> filled = fill(rows, columns, view);
  if (view.is_short()) {
    drop(filled, view.columns);
    fit(filled, view.columns);
  }
  std::string text;
  // Columns that cannot be cut may still be too wide together: then the line is.
  const auto add = [&](const std::string& line) {
    text += (view.is_short() ? shortened(line, view.columns) : line) + "\n";
  };
  add(line_of(filled, 0, true));
  for (size_t row = 0; row < rows.size(); ++row) add(line_of(filled, row, false));
  return text;
}

}  // namespace postrider::cli
