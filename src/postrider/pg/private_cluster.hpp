// The Postgres that `postrider serve` runs when no database is configured: a real server, created once in the
// data directory, reachable only through a socket in a 0700 directory, durable like any other.
//
//   <data_dir>/postgres        the cluster; operators may tune its postgresql.conf
//   <data_dir>/postgres.log    the server's log
//   <data_dir>/socket          the socket's directory (elsewhere if
//                              that path is too long, or if the
//                              server's user cannot reach it)
//   <data_dir>/postrider.lock  held while a postrider serves from this directory
//
// It runs as the user of postrider; for root, with which Postgres does not start, as the user `postgres`.
//
// It is stopped with postrider. If postrider is killed, the server continues for `orphan_grace`, so that a
// restart finds it running and adopts it; then a small watcher shuts it down.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "postrider/pg/server_upgrade.hpp"

namespace postrider::pg {

// what() is a sentence for the operator: the error and its remedy.
struct PrivateClusterError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct PrivateClusterOptions {
  std::string data_dir;
  std::vector<std::string>
      program_directories{};    // where to look for the server's programs; empty: the usual places
  bool is_for_capture = false;  // starts it with wal_level = logical
  std::chrono::seconds start_timeout{300};  // crash recovery included
  std::chrono::seconds stop_timeout{60};    // a fast shutdown; an immediate one afterwards
  std::chrono::seconds orphan_grace{60};
  std::chrono::milliseconds upgrade_settle{10'000};  // how long an upgrade of the package may take
  std::function<void()> check_stop{};  // called while the constructor waits; an exception ends the start
};

// Everything blocks; used by one thread at a time, before and after the loops run.
class PrivateCluster {
 public:
  // Makes the cluster if there is none, starts the server or adopts a running one, and waits until it takes
  // connections. Throws PrivateClusterError.
  explicit PrivateCluster(PrivateClusterOptions options);
  ~PrivateCluster();  // stop()
  PrivateCluster(const PrivateCluster&) = delete;
  PrivateCluster& operator=(const PrivateCluster&) = delete;

  // As the role `postrider`, which owns the database `postrider` and is no superuser.
  std::string url() const;
  bool is_adopted() const;  // found running
  pid_t pid() const;        // of the postmaster

  // Starts the server again when it has died. True if it had.
  bool revive();
  // Set if the installed minor version is not the running one.
  std::optional<ServerUpgrade> upgrade();
  // Restarts the server after such an upgrade, once per installed version. True if it did.
  bool restart_if_upgraded();
  // Fast shutdown; returns when the server is gone. Further calls do nothing.
  void stop();

  // The same URL without starting anything; throws PrivateClusterError when there is no cluster.
  static std::string url_of(const std::string& data_dir);
  // upgrade() of a server that another process runs.
  static std::optional<ServerUpgrade> upgrade_of(const std::string& data_dir);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postrider::pg
