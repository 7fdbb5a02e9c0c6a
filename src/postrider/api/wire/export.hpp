// A filtered list as a whole: GET of the list with `format=ndjson` or `format=csv`. Pages are read one after
// the other and written as they come, so that neither memory nor a transaction grows with the list.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "postrider/api/wire/routes.hpp"

namespace postrider::api {

struct ExportShape {
  std::string_view name;                  // of the file that a browser makes of it
  std::vector<std::string_view> columns;  // of CSV: members of an item
};

bool is_export(const Call& call);  // it has a `format`

// `list` answers a page. What it refuses is refused before anything is sent; an export that cannot go on is
// broken off, so that nobody takes it for whole.
Task<Response> export_list(Call& call, CallHandler list, ExportShape shape);

// Items of {"data":[…]} as they stand there.
std::vector<std::string_view> items_of_page(std::string_view page);
// RFC 4180, one line with its CRLF. A text that a spreadsheet would take for a formula gets a ' in front.
std::string csv_line(const std::vector<std::string>& cells);
std::string csv_text(std::string_view text);  // the ' and nothing else

}  // namespace postrider::api
