// The exit codes of the commands; base/exit_code.hpp explains them.
#pragma once

#include "postrider/base/exit_code.hpp"

namespace postrider::cli {

using base::ExitCode;
using enum base::ExitCode;

}  // namespace postrider::cli
