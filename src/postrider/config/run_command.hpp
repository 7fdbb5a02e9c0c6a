// Runs an operator's program and returns its output. Used for master keys and secrets.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "postrider/base/result.hpp"

namespace postrider::config {

// The first argument is the program's path; no shell is involved. The program gets this process's environment
// without the POSTRIDER_… variables, and leads a process group of its own, which is killed when it takes too
// long or prints more than a key can have. Blocking; any thread. The failure is what happened, without the
// command and without its output: "did not finish within 5000 ms".
base::Result<std::string, std::string> run_command(const std::vector<std::string>& arguments,
                                                   std::chrono::milliseconds timeout);

}  // namespace postrider::config
