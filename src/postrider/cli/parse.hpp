// Turns the words of a command line into a command and its values. Pure. Every error names the word that is
// wrong and what is expected instead.
#pragma once

#include <string>
#include <vector>

#include "postrider/cli/command.hpp"
#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

struct Parsed {
  const Command* command = nullptr;
  Given given;
};

// Throws Misuse. `words` are the arguments without the program's name.
Parsed parse_words(const std::vector<Command>& table, const std::vector<std::string>& words);

// Moves common options in front of the command after it, so that `postrider --json tenant list` works.
std::vector<std::string> command_first(std::vector<std::string> words);

}  // namespace postrider::cli
