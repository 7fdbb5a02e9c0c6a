#pragma once

namespace postrider::cli {

// Parses the command line and runs the command; returns the exit code (exit_code.hpp).
int run(int argc, char** argv);

}  // namespace postrider::cli
