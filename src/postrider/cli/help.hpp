// The overview, and what to say about a command line that cannot be understood.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "postrider/cli/command.hpp"

namespace postrider::cli {

std::string overview(const std::vector<Command>& table);

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
