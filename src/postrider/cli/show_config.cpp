#include <cstdio>

#include "postrider/api/resources/configured_sources.hpp"
#include "postrider/cli/commands.hpp"
#include "postrider/cli/exit_code.hpp"

namespace postrider::cli {

int show_config(const config::Loaded& loaded, bool as_json) {
  api::read_configured_sources(loaded.config, nullptr);  // reports their errors, as serve does
  const std::string text = as_json ? config::print_effective_json(loaded) : config::print_effective(loaded);
  std::fputs(text.c_str(), stdout);
  return done;
}

}  // namespace postrider::cli
