// Private to config/: the [[outbox]] tables of postrider.toml.
#pragma once

#include <vector>

#include "postrider/config/load.hpp"
#include "postrider/config/toml_file.hpp"

namespace postrider::config {

// Adds them to the configuration and, with masked URLs, to the shown settings. Throws ConfigError, which
// never contains a URL.
void add_outboxes(const std::vector<FileTable>& tables, Loaded& loaded);

// The text of a file that holds one secret. Throws ConfigError.
std::string read_secret_file(const std::string& path, const std::string& from);

}  // namespace postrider::config
