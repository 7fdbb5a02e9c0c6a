// Runs a command and says what went wrong so that a person knows what to do next.
#pragma once

#include <string>

#include "postrider/cli/command.hpp"
#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

// The command's exit code. A server's no is told on standard error (as its JSON with --json); Misuse and what
// else is thrown goes on to the caller.
int run_reported(const Command& command, Invocation& invocation);

// Several lines: the detail, each field, a hint.
std::string problem_text(const ServerProblem& problem);
ExitCode exit_code_of(const ServerProblem& problem);

}  // namespace postrider::cli
