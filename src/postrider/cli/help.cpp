#include "postrider/cli/help.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include "postrider/cli/output.hpp"
#include "postrider/cli/setting_help.hpp"
#include "postrider/config/suggest.hpp"

namespace postrider::cli {

namespace {

using Kind = Parameter::Kind;
using Rows = std::vector<std::pair<std::string, std::string>>;

constexpr size_t kNameWidthMax = 28;

std::string padded(std::string text, size_t width) {
  const size_t shown = display_width(text);
  if (shown < width) text.append(width - shown, ' ');
  return text;
}

// The command that the first words name, as deep as they do.
std::pair<const Command*, std::string> deepest(const std::vector<Command>& table,
                                               const std::vector<std::string>& words) {
  const std::vector<Command>* below = &table;
  const Command* last = nullptr;
  std::string path = "postrider";
  for (const std::string& word : words) {
    const Command* command = find_command(*below, word);
    if (command == nullptr) break;
    last = command;
    path += " " + command->name;
    below = &command->commands;
  }
  return {last, path};
}

// One line per row, its text wrapped in a column of its own; below the name if that is long.
void add_rows(std::string& text, const Rows& rows, size_t columns) {
  size_t width = 0;
  for (const auto& [name, help] : rows) width = std::max(width, std::min(display_width(name), kNameWidthMax));
  const size_t indent = 2 + width + 2;
  for (const auto& [name, help] : rows) {
    text += "  " + padded(name, width);
    bool is_line_start = display_width(name) > width;
    if (is_line_start)
      text += "\n" + std::string(indent, ' ');
    else
      text += "  ";
    is_line_start = true;
    size_t column = indent;
    std::istringstream words(help);
    for (std::string word; words >> word;) {
      const size_t length = display_width(word) + (is_line_start ? 0 : 1);
      if (!is_line_start && column + length > columns) {
        text += "\n" + std::string(indent, ' ');
        column = indent;
        is_line_start = true;
      }
      text += (is_line_start ? "" : " ") + word;
      column += display_width(word) + (is_line_start ? 0 : 1);
      is_line_start = false;
    }
    text += "\n";
  }
}

void add_paragraph(std::string& text, const std::string& paragraph, size_t columns) {
  size_t column = 0;
  std::istringstream words(paragraph);
  for (std::string word; words >> word;) {
    const size_t length = display_width(word);
    if (column > 0 && column + 1 + length > columns) {
      text += "\n";
      column = 0;
    }
    text += (column > 0 ? " " : "") + word;
    column += length + (column > 0 ? 1 : 0);
  }
  text += "\n";
}

std::string overview(const std::vector<Command>& table, size_t columns) {
  std::string text =
      "Delivers webhooks from Postgres: signed, retried, inspectable and replayable.\n\n"
      "Usage: postrider <command> [options]\n";
  std::string section;
  Rows rows;
  const auto flush = [&] {
    if (rows.empty()) return;
    text += "\n" + section + "\n";
    for (auto& [name, help] : rows) name = padded(name, 12);
    add_rows(text, rows, columns);
    rows.clear();
  };
  for (const Command& command : table) {
    if (command.is_hidden) continue;
    if (command.section != section) flush();
    section = command.section;
    rows.emplace_back(command.name, command.help);
  }
  flush();
  text +=
      "\nGet started\n"
      "  postrider serve                        start a server with a private Postgres\n"
      "  postrider tenant create acme           create a tenant\n"
      "  postrider endpoint create --help       see how to add an endpoint\n\n";
  add_paragraph(
      text,
      "Run `postrider help <command>` for details, `postrider help options` for options that every command "
      "takes, and `postrider help settings` for the settings of `postrider serve`.",
      columns);
  return text;
}

std::string value_of(const Parameter& parameter) {
  if (parameter.choices.empty()) return parameter.value_name;
  std::string value;
  for (const std::string& each : parameter.choices) value += (value.empty() ? "" : "|") + each;
  return value;
}

std::string shown_name(const Parameter& parameter) {
  if (!parameter.is_option()) return parameter.name;
  std::string name =
      parameter.short_name.empty() ? parameter.name : parameter.short_name + ", " + parameter.name;
  return parameter.kind == Kind::flag ? name : name + " " + value_of(parameter);
}

std::string shown_help(const Parameter& parameter) {
  return parameter.is_required ? parameter.help + " (required)" : parameter.help;
}

std::string usage(const Command& command, const std::string& path) {
  std::string line = "Usage: " + path;
  if (command.is_group()) return line + " <command> [options]\n";
  bool has_arguments = false, has_tenant_option = false;
  for (const Parameter& parameter : command.parameters) {
    if (parameter.kind == Kind::argument) line += " <" + parameter.name + ">";
    if (parameter.kind == Kind::optional_argument) line += " [<" + parameter.name + ">]";
    if (parameter.kind == Kind::rest) line += " [<" + parameter.name + ">…]";
    has_arguments = has_arguments || !parameter.is_option();
    has_tenant_option = has_tenant_option || parameter.name == "--tenant";
  }
  if (has_tenant_option && !has_arguments) line += " [<tenant>]";
  for (const Parameter& parameter : command.parameters)
    if (parameter.is_required) line += " " + parameter.name + " " + value_of(parameter);
  return line + " [options]\n";
}

void add_parameters(std::string& text, const char* title, const std::vector<Parameter>& parameters,
                    bool are_options, size_t columns) {
  Rows required_rows, rows;
  for (const Parameter& parameter : parameters)
    if (parameter.is_option() == are_options)
      (parameter.is_required ? required_rows : rows)
          .emplace_back(shown_name(parameter), shown_help(parameter));
  rows.insert(rows.begin(), required_rows.begin(), required_rows.end());
  if (rows.empty()) return;
  text += std::string("\n") + title + "\n";
  add_rows(text, rows, columns);
}

void add_examples(std::string& text, const Command& command) {
  if (command.examples.empty()) return;
  text += command.examples.size() == 1 ? "\nExample\n" : "\nExamples\n";
  for (const std::string& example : command.examples) text += "  " + example + "\n";
}

void add_common(std::string& text, const Command& command, size_t columns) {
  if (command.needs == Needs::server) {
    text += "\n";
    add_paragraph(
        text,
        "Common options: --output/-o, --json, --server, --key-file, --profile. See `postrider help options`.",
        columns);
  } else if (command.needs == Needs::settings && command.name == "serve") {
    add_setting_groups(text, [&](std::string& out, const Rows& rows) { add_rows(out, rows, columns); });
  } else if (command.needs == Needs::settings) {
    text += "\n";
    add_paragraph(text,
                  "Uses the settings of `postrider serve`: from flags such as --data-dir and --database-url, "
                  "POSTRIDER_… variables and postrider.toml (--config FILE). See `postrider help settings`.",
                  columns);
  }
}

std::string options_topic(size_t columns) {
  std::string text = "Options of every command that talks to a server\n\n";
  Rows rows;
  for (const Parameter& parameter : common_parameters(Needs::server))
    rows.emplace_back(shown_name(parameter), shown_help(parameter));
  add_rows(text, rows, columns);
  text += "\n";
  add_paragraph(
      text,
      "Options override environment variables, and these override the profile. Short IDs from a table are "
      "accepted wherever an ID is expected, as are unique prefixes of IDs. Times are given as an age (30m, "
      "1h, "
      "2d), a date (2026-04-08, midnight UTC) or an RFC 3339 timestamp; durations as 30s, 5m, 24h or 7d.",
      columns);
  return text;
}

std::string settings_topic(size_t columns) {
  std::string text = "Settings of `postrider serve`\n\n";
  add_paragraph(
      text,
      "Every setting is a flag (except secrets), a POSTRIDER_… variable and a key in postrider.toml, in this "
      "order of precedence: --data-dir, POSTRIDER_DATA_DIR, data_dir. `postrider config` prints the "
      "effective "
      "settings.",
      columns);
  add_setting_groups(text, [&](std::string& out, const Rows& rows) { add_rows(out, rows, columns); });
  return text;
}

}  // namespace

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  const std::string near = config::nearest(word, known);
  return near.empty() ? "" : " Did you mean `" + near + "`?";
}

std::string unknown_word(const std::vector<Command>& commands, const std::string& path,
                         const std::string& word) {
  if (word.starts_with('-'))
    return "Unknown option " + word + (path == "postrider" ? "." : " for `" + path + "`.") +
           did_you_mean(word, {"--help", "--version"});
  std::vector<std::string> known;
  for (const Command& each : commands)
    if (!each.is_hidden) known.push_back(each.name);
  return "Unknown command `" + word + "`" + (path == "postrider" ? "." : " for `" + path + "`.") +
         did_you_mean(word, known);
}

std::string help_text(const std::vector<Command>& table, const std::vector<std::string>& words,
                      size_t columns) {
  if (!words.empty() && words[0] == "options") return options_topic(columns);
  if (!words.empty() && words[0] == "settings") return settings_topic(columns);
  const auto [command, path] = deepest(table, words);
  if (command == nullptr) return overview(table, columns);
  std::string text;
  add_paragraph(text, command->help, columns);
  text += "\n" + usage(*command, path);
  if (command->is_group()) {
    Rows rows;
    for (const Command& below : command->commands)
      if (!below.is_hidden) rows.emplace_back(below.name, below.help);
    text += "\nCommands\n";
    add_rows(text, rows, columns);
    std::vector<std::string> all = command->examples;
    for (const Command& below : command->commands)
      if (!below.examples.empty() && all.size() < 4) all.push_back(below.examples.front());
    Command shown;
    shown.examples = std::move(all);
    add_examples(text, shown);
    return text + "\nRun `" + path + " <command> --help` for details.\n";
  }
  add_examples(text, *command);
  add_parameters(text, "Arguments", command->parameters, false, columns);
  add_parameters(text, "Options", command->parameters, true, columns);
  add_common(text, *command, columns);
  return text;
}

bool asks_for_help(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") return false;
    if (word == "--help" || word == "-h") return true;
  }
  return false;
}

std::optional<std::string> unknown_help_topic(const std::vector<Command>& table,
                                              const std::vector<std::string>& words) {
  if (!words.empty() && (words[0] == "options" || words[0] == "settings" || words[0] == "help"))
    return std::nullopt;
  const std::vector<Command>* commands = &table;
  std::string path = "postrider";
  for (const std::string& word : words) {
    if (word.starts_with('-') || commands->empty()) return std::nullopt;
    const Command* command = find_command(*commands, word);
    if (command == nullptr)
      return unknown_word(*commands, path, word) + "\n  Run `" + path + " --help` for the list of commands.";
    path += " " + command->name;
    commands = &command->commands;
  }
  return std::nullopt;
}

}  // namespace postrider::cli
