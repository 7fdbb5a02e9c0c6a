#include "postrider/cli/cli.hpp"

int main(int argc, char** argv) {
  return postrider::cli::run(argc, argv);
}
