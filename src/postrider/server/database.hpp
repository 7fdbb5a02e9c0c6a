// The database of this process: the configured one, or the private Postgres in the data directory.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "postrider/config/config.hpp"
#include "postrider/crypto/master_keys.hpp"
#include "postrider/pg/migrate.hpp"
#include "postrider/pg/private_cluster.hpp"

namespace postrider::server {

class Database {
 public:
  // Starts the private Postgres if there is to be one. Throws pg::PrivateClusterError, and what `check_stop`,
  // which is called repeatedly meanwhile, throws.
  explicit Database(const config::Config& config, std::function<void()> check_stop = {});

  const std::string& url() const { return url_; }
  const std::string& direct_url() const { return direct_url_; }  // past the pooler, for LISTEN and leases
  bool is_private() const { return cluster_ != nullptr; }

  // Called about once a second: a private Postgres that died is started again, and one whose package was
  // upgraded is restarted.
  void keep_alive();
  // A note for operators although the database works; empty: none. Any thread.
  std::string note() const;
  // Everything is written: stops the private Postgres and waits for it.
  void stop();

 private:
  std::unique_ptr<pg::PrivateCluster> cluster_;
  struct Note {
    std::mutex lock;
    std::string text;
  };
  std::unique_ptr<Note> note_ = std::make_unique<Note>();
  std::string url_;
  std::string direct_url_;
};

// Migrates over a connection of its own. While the server cannot be reached it is tried again for a minute,
// so that a node and its database may be started together. Throws pg::Error, also when tables are missing;
// at once when it is the role, the password or the database's name that is wrong.
// The note of /readyz while another minor version is installed than the private Postgres runs; otherwise
// empty.
std::string upgrade_note(const std::optional<pg::ServerUpgrade>& upgrade);

pg::MigrateReport migrate_database(const config::Config& config, const std::string& url);
// Creates missing tables and views again; returns them. Throws pg::Error.
std::vector<std::string> repair_database(const std::string& url);

// The configured master key; for the private Postgres otherwise the one in <data_dir>/master.key, or none if
// there is no such file yet. Throws config::ConfigError.
std::optional<crypto::MasterKeys> find_master_keys(const config::Config& config, bool is_private);
// The same, but creates the file if it is missing.
crypto::MasterKeys load_master_keys(const config::Config& config, bool is_private);

}  // namespace postrider::server
