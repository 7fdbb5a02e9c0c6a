// The files of a private cluster: their paths, owner and contents. Used by
// private_cluster.cpp only.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "postrider/pg/child_process.hpp"

namespace postrider::pg {

struct ClusterLayout {
  std::string data_dir;  // absolute
  User server_user;      // the user that the server runs as
  bool is_reachable;     // the server's user can enter data_dir by its path

  std::string cluster() const { return data_dir + "/postgres"; }
  std::string unfinished() const { return data_dir + "/postgres.new"; }
  std::string log() const { return data_dir + "/postgres.log"; }
  std::string lock() const { return data_dir + "/postrider.lock"; }
  std::string pid_file() const { return cluster() + "/postmaster.pid"; }
  std::string socket_directory() const;

  // The value of -D: the path, or the child's own descriptor if the server's user cannot traverse the path (a
  // data directory below /root).
  std::string as_seen_by_server(const std::string& path) const {
    return is_reachable ? path : child_directory;
  }
  // Under root the server becomes server_user.
  std::optional<User> change_to() const;

  // Creates data_dir if it is missing. Throws PrivateClusterError if another user owns it.
  static ClusterLayout prepare(const std::string& data_dir);
};

// Creates a 0700 directory of `owner`, or accepts an existing one with exactly that owner and mode. Otherwise
// throws PrivateClusterError: a directory created by another user must not be trusted.
void make_private_directory(const std::string& path, const User& owner);

void write_owned_file(const std::string& path, const std::string& text, const User& owner);

// 15 for a cluster made by Postgres 15; nothing when there is no cluster.
std::optional<int> cluster_major(const std::string& cluster);

// The postmaster that serves this cluster now. The pid in a stale postmaster.pid may belong to any process,
// so the process's working directory decides.
struct Postmaster {
  pid_t pid = 0;
  std::string socket_directory;
};
std::optional<Postmaster> running_postmaster(const std::string& cluster);

std::string server_settings_file(int major);                                  // postgresql.conf
std::string client_authentication_file();                                     // pg_hba.conf
std::string identity_map_file(const std::vector<std::string>& system_users);  // pg_ident.conf
std::string first_statements();  // for a single-user backend, one a line
// Command line settings, which an edited file cannot override.
std::vector<std::string> fixed_settings(const std::string& socket_directory);

// The settings for change data capture. A server with replication slots only starts with them.
inline constexpr const char* capture_setting = "wal_level=logical";
bool has_replication_slots(const std::string& cluster);
bool was_started_for_capture(const std::string& cluster);  // the last time it was started

}  // namespace postrider::pg
