// `postrider import FILE`: endpoints with their secrets, one JSON object a line.
#include <string_view>

#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"
#include "postrider/cli/progress.hpp"

namespace postrider::cli {

namespace {

constexpr size_t kLinesPerCall = 200;
constexpr size_t kBytesPerCall = 4 << 20;

// The next lines of the text, as many as go into one call.
std::string_view take_lines(std::string_view& rest, size_t& lines) {
  size_t end = 0;
  lines = 0;
  while (end < rest.size() && lines < kLinesPerCall) {
    const size_t newline = rest.find('\n', end);
    const size_t next = newline == std::string_view::npos ? rest.size() : newline + 1;
    if (lines > 0 && next > kBytesPerCall) break;
    end = next;
    ++lines;
  }
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(end);
  return taken;
}

int import_file(Invocation& in) {
  const std::string text = read_text(in.argument("file"));
  std::string_view rest = text;
  Target target("v1", "endpoints", "import");
  if (in.has("--dry-run")) target.with("dry_run", "true");
  json::array results;
  size_t failures = 0;
  int64_t lines_before = 0;
  Progress bar("bytes", text.size());
  while (!rest.empty()) {
    size_t lines = 0;
    RemoteCall call{"POST", target, std::string(take_lines(rest, lines))};
    const json::value response = in.server().call(call);
    for (const json::value& item : response.at("data").as_array()) {
      json::object result = item.as_object();
      result["line"] = result["line"].to_number<int64_t>() + lines_before;
      if (result["status"].to_number<int64_t>() >= 400) ++failures;
      results.push_back(std::move(result));
    }
    lines_before += static_cast<int64_t>(lines);
    bar.update(text.size() - rest.size());
  }
  bar.finish();
  in.out().list(results, {{"LINE", "/line"},
                          {"STATUS", "/status"},
                          {"TENANT", "/tenant_id"},
                          {"ENDPOINT", "/id"},
                          {"DETAIL", "/detail"}});
  const size_t imported = results.size() - failures;
  in.out().note((in.has("--dry-run") ? "Dry run: would import " : "Imported ") + std::to_string(imported) +
                ", failed " + std::to_string(failures) + ".");
  return failures == 0 ? done : failed;
}

}  // namespace

Command import_command() {
  return command("import", "Import endpoints and their secrets (NDJSON)",
                 {argument("file", "NDJSON file with one endpoint per line (- for standard input)"),
                  flag("--dry-run", "Only check what would happen")},
                 import_file)
      .example("postrider import endpoints.ndjson --dry-run");
}

}  // namespace postrider::cli
