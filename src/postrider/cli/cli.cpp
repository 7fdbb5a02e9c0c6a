#include "postrider/cli/cli.hpp"

#include <cstdio>
#include <exception>
#include <string>

#include "postrider/cli/commands.hpp"
#include "postrider/cli/groups.hpp"
#include "postrider/cli/help.hpp"
#include "postrider/cli/invocation.hpp"
#include "postrider/cli/parse.hpp"
#include "postrider/cli/report.hpp"
#include "postrider/cli/terminal.hpp"
#include "postrider/server/core_dumps.hpp"

namespace postrider::cli {
namespace {

int print_help(const std::vector<std::string>& words) {
  if (const auto wrong = unknown_help_topic(command_table(), words)) throw Misuse(*wrong);
  std::fputs(help_text(command_table(), words, text_columns()).c_str(), stdout);
  return done;
}

int parse_and_run(std::vector<std::string> words) {
  if (words.empty()) return print_help({});
  if (words[0] == "--version" || words[0] == "-V" || words[0] == "-v") return version();
  words = command_first(std::move(words));
  if (words[0] == "help") return print_help({words.begin() + 1, words.end()});
  if (asks_for_help(words)) return print_help(words);
  Parsed parsed = parse_words(command_table(), words);
  Invocation invocation(*parsed.command, std::move(parsed.given), config::process_environment());
  return run_reported(invocation);
}

}  // namespace

int run(int argc, char** argv) {
  server::forbid_core_dumps();
  try {
    return parse_and_run({argv + 1, argv + argc});
  } catch (const Misuse& error) {
    std::fprintf(stderr, "postrider: %s\n", error.what());
    return misused;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "postrider: %s\n", error.what());
    return failed;
  }
}

}  // namespace postrider::cli
