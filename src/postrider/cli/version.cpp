#include "postrider/base/version.hpp"

#include <cstdio>

#include "postrider/cli/commands.hpp"
#include "postrider/cli/exit_code.hpp"

namespace postrider::cli {

int version() {
  std::printf("postrider %s\n", std::string(base::kVersion).c_str());
  return done;
}

}  // namespace postrider::cli
