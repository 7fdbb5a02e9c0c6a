// The overview, and what to say about a command line that cannot be understood.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "postrider/cli/command.hpp"

namespace postrider::cli {

// For the command that the words name; for none, the overview.
std::string help_text(const std::vector<Command>& table, const std::vector<std::string>& words);
// --help or -h is among them, before any `--`.
bool asks_for_help(const std::vector<std::string>& words);

// A word that is no command where one must stand: a sentence, with the nearest one that there is.
std::optional<std::string> wrong_command(const std::vector<Command>& table,
                                         const std::vector<std::string>& words);
// An option that the command does not have.
std::optional<std::string> wrong_option(const std::vector<Command>& table,
                                        const std::vector<std::string>& words);
// "postrider tenant list" for the words that name it.
std::string command_path(const std::vector<Command>& table, const std::vector<std::string>& words);

// Parameters of a command and those that its needs bring.
std::vector<Parameter> all_parameters(const Command& command);

}  // namespace postrider::cli
