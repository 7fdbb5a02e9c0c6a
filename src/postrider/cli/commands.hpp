// One function per command, each in its own file. They print to stdout, log to stderr and return the exit
// code; run() in cli.cpp reports their exceptions.
#pragma once

#include "postrider/config/load.hpp"

namespace postrider::cli {

int migrate(const config::Loaded& loaded);
int repair(const config::Loaded& loaded);
int show_config(const config::Loaded& loaded, bool as_json);
int database_url(const config::Loaded& loaded);
int version();

}  // namespace postrider::cli
