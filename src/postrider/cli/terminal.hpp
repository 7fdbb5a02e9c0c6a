// The terminal that a command runs in.
#pragma once

#include <string>

namespace postrider::cli {

// Columns that output may fill; 0 when standard output is no terminal, and lines may have any length.
size_t output_columns();
// Columns for running text such as help: at most 100, also when standard output is no terminal.
size_t text_columns();
bool is_output_terminal();
// Someone can response a question: standard input and standard error are a terminal.
bool can_ask();
// Asks on standard error and reads a line. Only y and yes are a yes.
bool ask(const std::string& question);
// Moves to the top of the screen and clears it.
void clear_screen();

}  // namespace postrider::cli
