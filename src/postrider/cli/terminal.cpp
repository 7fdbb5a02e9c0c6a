#include "postrider/cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>

namespace postrider::cli {

namespace {

constexpr size_t kColumnsMin = 40, kColumnsDefault = 80, kTextColumnsMax = 100;

size_t terminal_columns() {
  // COLUMNS first, as ls and git do: setting it is deliberate.
  if (const char* text = std::getenv("COLUMNS"))
    if (const long columns = std::strtol(text, nullptr, 10); columns > 0) return static_cast<size_t>(columns);
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kColumnsDefault;
}

}  // namespace

bool is_output_terminal() {
  return ::isatty(STDOUT_FILENO) == 1;
}

size_t output_columns() {
  return is_output_terminal() ? std::max(terminal_columns(), kColumnsMin) : 0;
}

size_t text_columns() {
  const size_t columns = output_columns();
  return columns == 0 ? kTextColumnsMax : std::min(columns, kTextColumnsMax);
}

bool can_ask() {
  return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
}

bool ask(const std::string& question) {
  std::fprintf(stderr, "%s [y/N] ", question.c_str());
  std::fflush(stderr);
  std::string line;
  std::getline(std::cin, line);
  return line == "y" || line == "Y" || line == "yes" || line == "Yes";
}

void clear_screen() {
  std::fputs("\x1b[H\x1b[2J", stdout);
}

}  // namespace postrider::cli
