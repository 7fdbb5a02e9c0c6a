// Private to config/: the [[source]] tables of postrider.toml.
#pragma once

#include <vector>

#include "postrider/config/load.hpp"
#include "postrider/config/toml_file.hpp"

namespace postrider::config {

// Adds them to the configuration and, with masked secrets, to the shown settings. Takes the id and the
// secrets out; the rest is left to the rules of the API. Throws ConfigError, which never contains a secret.
void add_sources(const std::vector<FileDocument>& documents, Loaded& loaded);

}  // namespace postrider::config
