#include <cstdio>

#include "postrider/cli/commands.hpp"
#include "postrider/cli/exit_code.hpp"
#include "postrider/pg/private_cluster.hpp"

namespace postrider::cli {

// The URL with its password, if it has one: it is meant for `psql "$(postrider database-url)"`.
int database_url(const config::Loaded& loaded) {
  const config::Config& config = loaded.config;
  const std::string url =
      config.database_url.empty() ? pg::PrivateCluster::url_of(config.data_dir) : config.database_url;
  std::printf("%s\n", url.c_str());
  return done;
}

}  // namespace postrider::cli
