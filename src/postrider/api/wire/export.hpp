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

// `list` returns a page. What it rejects is rejected before anything is sent; an export that cannot go on is
// broken off, so that it is not taken for complete.
Task<Response> export_list(Call& call, CallHandler list, ExportShape shape);

// Several lists in one body of NDJSON, one after the other: {"kind": …, "data": …} on each line.
struct ExportPart {
  std::string_view kind;
  CallHandler list;
  int page_rows = 250;
};
// `first` is the line before them. The last line is {"kind":"end","counts":{…}}: without it the export is cut
// off.
Task<Response> export_parts(Call& call, std::string first, std::vector<ExportPart> parts,
                            std::string file_name);

// Items of {"data":[…]} as they stand there.
std::vector<std::string_view> items_of_page(std::string_view page);
// RFC 4180, one line with its CRLF. A text that a spreadsheet would take for a formula gets a ' in front.
std::string csv_line(const std::vector<std::string>& cells);
std::string csv_text(std::string_view text);  // the ' and nothing else

}  // namespace postrider::api
