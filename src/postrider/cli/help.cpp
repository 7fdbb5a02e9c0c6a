#include "postrider/cli/help.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include "postrider/config/suggest.hpp"

namespace postrider::cli {

namespace {

constexpr size_t kNameWidthMax = 30;
constexpr size_t kLineMax = 100;

const Command* find(const std::vector<Command>& commands, const std::string& name) {
  const auto found = std::find_if(commands.begin(), commands.end(),
                                  [&](const Command& command) { return command.name == name; });
  return found == commands.end() ? nullptr : &*found;
}

// The command that the first words name, as deep as they do.
const Command* deepest(const std::vector<Command>& table, const std::vector<std::string>& words) {
  const std::vector<Command>* below = &table;
  const Command* last = nullptr;
  for (const std::string& word : words) {
    const Command* command = find(*below, word);
    if (command == nullptr) break;
    last = command;
    below = &command->commands;
  }
  return last;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  const std::string near = config::nearest(word, known);
  return near.empty() ? "" : " Did you mean `" + near + "`?";
}

std::string padded(std::string text, size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

std::string overview(const std::vector<Command>& table) {
  std::string text =
      "Delivers webhooks from Postgres: signed, retried, inspectable and replayable.\n\n"
      "usage: postrider COMMAND …          `postrider help COMMAND` explains one\n";
  std::string section;
  for (const Command& command : table) {
    if (command.section != section) text += "\n" + command.section + "\n";
    section = command.section;
    text += "  " + padded(command.name, 14) + command.help + "\n";
  }
  text +=
      "\nCommands that talk to a server take --server, --key or --key-file, or a profile, and --json for\n"
      "programs. Settings of `serve` come from flags, then POSTRIDER_… variables, then postrider.toml.\n";
  return text;
}

// One line per parameter, its help wrapped beside it.
void add_rows(std::string& text, const std::vector<std::pair<std::string, std::string>>& rows) {
  size_t width = 0;
  for (const auto& [name, help] : rows) width = std::max(width, std::min<size_t>(name.size(), kNameWidthMax));
  for (const auto& [name, help] : rows) {
    text += "  " + padded(name, width);
    size_t column = 2 + std::max(width, name.size());
    std::istringstream words(help);
    std::string gap = "  ";
    for (std::string word; words >> word; gap = " ") {
      if (column + gap.size() + word.size() > kLineMax) {
        text += "\n" + std::string(2 + width, ' ');
        column = 2 + width;
        gap = "  ";
      }
      text += gap + word;
      column += gap.size() + word.size();
    }
    text += "\n";
  }
}

std::string shown_name(const Parameter& parameter) {
  if (!parameter.name.starts_with("--")) return parameter.name;
  if (parameter.kind == Parameter::Kind::flag) return parameter.name;
  std::string value = parameter.value_name;
  if (!parameter.choices.empty()) {
    value.clear();
    for (const std::string& each : parameter.choices) value += (value.empty() ? "" : "|") + each;
  }
  return parameter.name + " " + value;
}

std::string usage(const Command& command, const std::string& path) {
  std::string line = "usage: " + path;
  if (!command.commands.empty()) return line + " COMMAND …\n";
  for (const Parameter& parameter : command.parameters) {
    if (parameter.kind == Parameter::Kind::argument) line += " <" + parameter.name + ">";
    if (parameter.kind == Parameter::Kind::optional_argument) line += " [" + parameter.name + "]";
    if (parameter.kind == Parameter::Kind::rest) line += " <" + parameter.name + ">…";
  }
  return line + " [options]\n";
}

void add_parameters(std::string& text, const char* title, const std::vector<Parameter>& parameters,
                    bool are_options) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Parameter& parameter : parameters)
    if (parameter.name.starts_with("--") == are_options)
      rows.emplace_back(shown_name(parameter), parameter.help);
  if (rows.empty()) return;
  text += std::string("\n") + title + "\n";
  add_rows(text, rows);
}

}  // namespace

std::string help_text(const std::vector<Command>& table, const std::vector<std::string>& words) {
  const Command* command = deepest(table, words);
  if (command == nullptr) return overview(table);
  std::string text = command->help + "\n\n" + usage(*command, command_path(table, words));
  if (!command->commands.empty()) {
    std::vector<std::pair<std::string, std::string>> rows;
    for (const Command& below : command->commands) rows.emplace_back(below.name, below.help);
    text += "\nCommands\n";
    add_rows(text, rows);
    return text;
  }
  add_parameters(text, "Arguments", command->parameters, false);
  add_parameters(text, "Options", command->parameters, true);
  add_parameters(text, command->needs == Needs::server ? "Connection" : "Settings",
                 common_parameters(command->needs), true);
  return text;
}

bool asks_for_help(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") return false;
    if (word == "--help" || word == "-h") return true;
  }
  return false;
}

std::optional<std::string> wrong_command(const std::vector<Command>& table,
                                         const std::vector<std::string>& words) {
  const std::vector<Command>* commands = &table;
  std::string path = "postrider";
  for (const std::string& word : words) {
    if (word.starts_with('-') || commands->empty()) return std::nullopt;
    const Command* command = find(*commands, word);
    if (command == nullptr) {
      std::vector<std::string> known;
      for (const Command& each : *commands) known.push_back(each.name);
      return "`" + path + "` has no command `" + word + "`." + did_you_mean(word, known) + " See `" + path +
             (path == "postrider" ? " help`." : " --help`.");
    }
    path += " " + word;
    commands = &command->commands;
  }
  return std::nullopt;
}

std::optional<std::string> wrong_option(const std::vector<Command>& table,
                                        const std::vector<std::string>& words) {
  const Command* command = deepest(table, words);
  if (command == nullptr || !command->commands.empty()) return std::nullopt;
  std::vector<std::string> known = {"--help"};
  for (const Parameter& parameter : all_parameters(*command)) known.push_back(parameter.name);
  for (const std::string& word : words) {
    if (word == "--") return std::nullopt;
    const std::string name = word.substr(0, word.find('='));
    if (!name.starts_with("--") || std::count(known.begin(), known.end(), name) > 0) continue;
    return "`" + command_path(table, words) + "` has no option " + name + "." + did_you_mean(name, known);
  }
  return std::nullopt;
}

std::string command_path(const std::vector<Command>& table, const std::vector<std::string>& words) {
  std::string path = "postrider";
  const std::vector<Command>* commands = &table;
  for (const std::string& word : words) {
    const Command* command = find(*commands, word);
    if (command == nullptr) break;
    path += " " + word;
    commands = &command->commands;
  }
  return path;
}

std::vector<Parameter> all_parameters(const Command& command) {
  std::vector<Parameter> all = command.parameters;
  for (Parameter& parameter : common_parameters(command.needs)) all.push_back(std::move(parameter));
  return all;
}

}  // namespace postrider::cli
