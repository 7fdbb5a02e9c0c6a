#include "postrider/cli/help.hpp"

#include <algorithm>

#include "postrider/config/suggest.hpp"

namespace postrider::cli {

namespace {

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

}  // namespace

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
