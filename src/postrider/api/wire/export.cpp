#include "postrider/api/wire/export.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <memory>
#include <stdexcept>
#include <utility>

#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/page.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/pg/error.hpp"

namespace postrider::api {

namespace {

using namespace std::chrono_literals;
namespace json = boost::json;

constexpr int kTriesMax = 20;  // of one page, while the database is unavailable
constexpr auto kPause = 500ms;

struct Export {
  Call call;
  Shares::Place place;
  CallHandler list;
  ExportShape shape;
  bool is_csv = false;
  std::string page;
  std::string_view kind = {};  // of lines that name it
  uint64_t rows = 0;           // written of this list
};

void set_parameter(http::Request& request, std::string_view name, std::string value) {
  std::erase_if(request.query, [name](const http::Parameter& each) { return each.name == name; });
  request.query.push_back({std::string(name), std::move(value)});
}

std::string cell(const json::object& item, std::string_view name) {
  const json::value* value = item.if_contains(name);
  if (value == nullptr || value->is_null()) return {};
  return value->is_string() ? csv_text(value->get_string()) : json::serialize(*value);
}

std::string header_line(const ExportShape& shape) {
  return csv_line({shape.columns.begin(), shape.columns.end()});
}

std::string csv_row(const ExportShape& shape, std::string_view item) {
  const json::value parsed = json::parse(item);
  std::vector<std::string> cells;
  for (const std::string_view column : shape.columns) cells.push_back(cell(parsed.as_object(), column));
  return csv_line(cells);
}

Task<void> append_items(Export& task, std::string& out) {
  runtime::Pause pause(task.call.services.loop);
  for (const std::string_view item : items_of_page(task.page)) {
    ++task.rows;
    if (task.is_csv)
      out += csv_row(task.shape, item);
    else if (!task.kind.empty())
      out.append(R"({"kind":")").append(task.kind).append(R"(","data":)").append(item).append("}\n");
    else
      out.append(item).append("\n");
    co_await pause;
  }
}

// The last member of a page, if there is one.
std::string next_cursor(std::string_view page) {
  constexpr std::string_view kName = "],\"next_cursor\":\"", kEnd = "\"}";
  const size_t at = page.rfind(kName);
  if (at == std::string_view::npos || !page.ends_with(kEnd)) return {};
  return std::string(page.substr(at + kName.size(), page.size() - at - kName.size() - kEnd.size()));
}

// Nothing while the database is unavailable or too many calls of the same tenant or key wait for it.
Task<std::optional<std::string>> try_page(Export& task) {
  try {
    Response response = co_await task.list(task.call);
    if (response.status == 200) co_return std::move(response.body);
    if (response.status < 500) throw std::runtime_error("the list is rejected: " + response.body);
  } catch (const pg::Error& error) {
    if (is_statement_timeout(error)) throw;
  } catch (const CallRejected& rejected) {
    if (rejected.problem().status == 401) throw;
  }
  co_return std::nullopt;
}

Task<void> next_page(Export& task, const http::BodyStream& body) {
  runtime::Wakeup pause(task.call.services.loop);
  for (int tries = 0; tries < kTriesMax && !body.is_closing(); ++tries) {
    std::optional<std::string> page = co_await try_page(task);
    if (page) {
      task.page = std::move(*page);
      co_return;
    }
    co_await pause.wait_for(kPause);
  }
  throw std::runtime_error("the export was aborted");
}

// Writes the rest of the list, from the page that was read. False: the client is gone.
Task<bool> write_list(Export& task, http::BodyStream& body, std::string out) {
  while (true) {
    co_await append_items(task, out);
    if (!out.empty()) {
      const bool is_there = co_await body.write(out);
      if (!is_there) co_return false;
    }
    out.clear();
    std::string cursor = next_cursor(task.page);
    if (cursor.empty()) co_return true;
    set_parameter(task.call.request, "cursor", std::move(cursor));
    co_await next_page(task, body);
  }
}

Task<void> run(std::shared_ptr<Export> task, http::BodyStream& body) {
  std::string header = task->is_csv ? header_line(task->shape) : std::string();
  const bool is_written = co_await write_list(*task, body, std::move(header));
  static_cast<void>(is_written);
}

Task<void> run_parts(std::shared_ptr<Export> task, std::string first, std::vector<ExportPart> parts,
                     http::BodyStream& body) {
  std::string out = std::move(first) + "\n";
  JsonObject counts;
  for (const ExportPart& part : parts) {
    task->list = part.list;
    task->kind = part.kind;
    task->rows = 0;
    task->call.request.query.clear();
    set_parameter(task->call.request, "limit", std::to_string(part.page_rows));
    co_await next_page(*task, body);
    const bool is_written = co_await write_list(*task, body, std::move(out));
    if (!is_written) co_return;
    out.clear();
    counts.add(part.kind, task->rows);
  }
  out = R"({"kind":"end","counts":)" + counts.text() + "}\n";
  const bool is_written = co_await body.write(out);
  static_cast<void>(is_written);
}

}  // namespace

bool is_export(const Call& call) {
  return call.request.query_value("format").has_value();
}

std::vector<std::string_view> items_of_page(std::string_view page) {
  constexpr std::string_view kName = "{\"data\":[";
  std::vector<std::string_view> items;
  if (!page.starts_with(kName)) return items;
  int depth = 0;
  bool is_in_text = false;
  size_t begin = 0;
  for (size_t at = kName.size(); at < page.size(); ++at) {
    const char c = page[at];
    if (is_in_text) {
      if (c == '\\') ++at;
      is_in_text = c != '"';
    } else if (c == '"') {
      is_in_text = true;
    } else if (c == '{' && ++depth == 1) {
      begin = at;
    } else if (c == '}' && --depth == 0) {
      items.push_back(page.substr(begin, at + 1 - begin));
    } else if (c == ']' && depth == 0) {
      break;
    }
  }
  return items;
}

std::string csv_text(std::string_view text) {
  constexpr std::string_view kFormula = "=+-@\t\r";
  const bool is_formula = !text.empty() && kFormula.find(text.front()) != std::string_view::npos;
  return (is_formula ? "'" : "") + std::string(text);
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += ',';
    if (cells[i].find_first_of(",\"\r\n") == std::string::npos) {
      line += cells[i];
      continue;
    }
    line += '"';
    for (const char c : cells[i]) line.append(c == '"' ? 2 : 1, c);
    line += '"';
  }
  return line + "\r\n";
}

Task<Response> export_parts(Call& call, std::string first, std::vector<ExportPart> parts,
                            std::string file_name) {
  Shares& exports = call.services.exports;
  const std::string holder = holder_of(call.principal);
  const Shares::Room room = exports.room_for(holder);
  if (room != Shares::Room::free) co_return call.reject(no_room(exports, room, call.principal, "exports"));
  Shares::Place place = exports.take(holder);
  auto task = std::make_shared<Export>(Export{call, std::move(place), nullptr, {}, false, {}});
  task->call.is_cursor_open = true;
  Response response;
  response.content_type = "application/x-ndjson";
  response.header("cache-control", "no-store")
      .header("content-disposition", "attachment; filename=\"" + file_name + "\"");
  response.stream = [task, first = std::move(first), parts = std::move(parts)](http::BodyStream& body) {
    return run_while_allowed(task->call, run_parts(task, first, parts, body), body);
  };
  co_return response;
}

Task<Response> export_list(Call& call, CallHandler list, ExportShape shape) {
  FieldProblems problems;
  const std::string format(*call.request.query_value("format"));
  if (format != "ndjson" && format != "csv") problems.push_back({"format", "must be ndjson or csv"});
  for (const char* name : {"limit", "cursor"})
    if (call.request.query_value(name))
      problems.push_back({name, "cannot be combined with `format`: an export contains the whole list"});
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  Shares& exports = call.services.exports;
  const std::string holder = holder_of(call.principal);
  const Shares::Room room = exports.room_for(holder);
  if (room != Shares::Room::free) co_return call.reject(no_room(exports, room, call.principal, "exports"));
  Shares::Place place = exports.take(holder);
  std::erase_if(call.request.query, [](const http::Parameter& each) { return each.name == "format"; });
  set_parameter(call.request, "limit", std::to_string(page_limit_max));
  Response first = co_await list(call);
  if (first.status != 200) co_return first;
  auto task = std::make_shared<Export>(
      Export{call, std::move(place), list, std::move(shape), format == "csv", std::move(first.body)});
  task->call.is_cursor_open = true;
  Response response;
  response.content_type = task->is_csv ? "text/csv; charset=utf-8; header=present" : "application/x-ndjson";
  response.header("cache-control", "no-store")
      .header("content-disposition",
              "attachment; filename=\"" + std::string(task->shape.name) + "." + format + "\"");
  response.stream = [task](http::BodyStream& body) {
    return run_while_allowed(task->call, run(task, body), body);
  };
  co_return response;
}

}  // namespace postrider::api
