// Help pages, and suggestions for words that the command line does not know.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "postrider/cli/command.hpp"

namespace postrider::cli {

// The page of the command that the words name; the overview if they name none; `options` and `settings` are
// topics of their own. Lines fit `columns`.
std::string help_text(const std::vector<Command>& table, const std::vector<std::string>& words,
                      size_t columns);
// --help or -h is among them, before any `--`.
bool asks_for_help(const std::vector<std::string>& words);

// The words name no command and no topic: an error message.
std::optional<std::string> unknown_help_topic(const std::vector<Command>& table,
                                              const std::vector<std::string>& words);
// "Unknown command `lst` for `postrider tenant`. Did you mean `list`?"
std::string unknown_word(const std::vector<Command>& commands, const std::string& path,
                         const std::string& word);
// " Did you mean `list`?", or empty if no known word is similar.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& known);

}  // namespace postrider::cli
