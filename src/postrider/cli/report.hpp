// Runs a command and explains what went wrong so that the reader knows what to do next.
#pragma once

#include <string>

#include "postrider/cli/command.hpp"
#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

// The command's exit code; with --watch it runs until interrupted. A problem from the server goes to standard
// error (as JSON with --json); Misuse and everything else propagates to the caller.
int run_reported(Invocation& invocation);

// Several lines: the detail, each invalid field by its option, a hint.
std::string problem_text(const ServerProblem& problem, const Command& command, const std::string& hint);
// "/event_types/0" → "--event-type", "type" → "<type>"; as it is if the command has no such parameter.
std::string parameter_of(const Command& command, std::string_view pointer);
// The detail of a number's problem as it applies to the option: durations have units there.
std::string in_units(const Command& command, std::string_view pointer, const std::string& detail);
ExitCode exit_code_of(const ServerProblem& problem);

}  // namespace postrider::cli
