#include "postrider/cli/cli.hpp"

namespace postrider::cli {

int run(int, char**) {
  return 2;
}

}  // namespace postrider::cli
