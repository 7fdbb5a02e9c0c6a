// Lists: page by page into a table, or exported as the server streams them.
#include <boost/json/array.hpp>
#include <chrono>
#include <cstdio>

#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

namespace {

constexpr int64_t kRowsDefault = 50;
constexpr int64_t kPageMax = 250;

int64_t rows_wanted(const Invocation& in) {
  const int64_t rows = in.integer("--limit").value_or(kRowsDefault);
  if (rows < 1) throw Misuse("--limit must be 1 or more.");
  return rows;
}

// Passes on at most `lines` records; line breaks inside quotes belong to a CSV value.
class RecordLimit {
 public:
  RecordLimit(std::optional<int64_t> lines, bool has_quotes) : left_(lines), has_quotes_(has_quotes) {}

  std::string_view take(std::string_view data) {
    if (!left_) return data;
    for (size_t i = 0; i < data.size(); ++i) {
      if (*left_ <= 0) return data.substr(0, i);
      if (has_quotes_ && data[i] == '"') is_quoted_ = !is_quoted_;
      if (data[i] == '\n' && !is_quoted_) --*left_;
    }
    return data;
  }

 private:
  std::optional<int64_t> left_;
  bool has_quotes_, is_quoted_ = false;
};

// The server's bytes as they come. An export that was cut off must not look complete.
int write_export(Invocation& in, Target target, const std::string& format) {
  RemoteCall call{"GET", target.with("format", format)};
  call.timeout = std::chrono::hours(24);
  call.silence_max = std::chrono::minutes(2);
  const bool is_csv = format == "csv";
  std::optional<int64_t> lines;
  if (in.has("--limit")) lines = rows_wanted(in) + (is_csv ? 1 : 0);
  RecordLimit limit(lines, is_csv);
  const bool is_whole = in.server().stream(call, [&limit](std::string_view data) {
    const std::string_view kept = limit.take(data);
    std::fwrite(kept.data(), 1, kept.size(), stdout);
  });
  std::fflush(stdout);
  if (!is_whole) throw ServerUnreachable("The export was interrupted; the output is incomplete.");
  return done;
}

}  // namespace

std::vector<Parameter> list_parameters() {
  return {option("--limit", "N", "Maximum number of rows (default: 50)"), flag("--all", "Fetch every row"),
          option("--cursor", "CURSOR", "Continue from the next_cursor of an earlier response (see --json)"),
          watch_flag()};
}

Parameter format_option() {
  return choice("--format", {"ndjson", "csv"}, "Export every matching row (or --limit N) in this format");
}

int show_list(Invocation& in, Target target, const std::vector<Column>& columns, std::string_view none,
              const std::function<void(json::object&)>& prepare) {
  if (const auto format = in.value("--format")) return write_export(in, std::move(target), *format);
  const bool wants_all = in.has("--all");
  const int64_t rows_max = rows_wanted(in);
  json::array rows;
  json::value last;
  std::optional<std::string> cursor = in.value("--cursor");
  while (true) {
    const int64_t wanted = wants_all ? kPageMax : rows_max - static_cast<int64_t>(rows.size());
    Target page = target;
    page.with("limit", std::to_string(std::min(wanted, kPageMax))).with("cursor", cursor);
    last = in.server().get(page);
    for (json::value& row : last.at("data").as_array()) rows.push_back(std::move(row));
    const json::value* next = last.as_object().if_contains("next_cursor");
    cursor = next && next->is_string() ? std::optional(std::string(next->as_string())) : std::nullopt;
    if (!cursor || (!wants_all && static_cast<int64_t>(rows.size()) >= rows_max)) break;
  }
  if (prepare && in.out().is_for_people())
    for (json::value& row : rows) prepare(row.as_object());
  const size_t count = rows.size();
  last.as_object()["data"] = std::move(rows);
  in.out().list(last, columns, none);
  if (cursor && count > 0)
    in.out().note("More results: add --all, or --limit " + std::to_string(4 * rows_max) + ".");
  return done;
}

}  // namespace postrider::cli
