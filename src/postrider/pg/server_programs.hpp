// Where the programs of a Postgres server are on this machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace postrider::pg {

struct ServerPrograms {
  std::string directory;  // has postgres and initdb
  int major = 0;          // 15

  std::string postgres() const { return directory + "/postgres"; }
  std::string initdb() const { return directory + "/initdb"; }
};

inline constexpr int server_major_min = 14;

// Debian's /usr/lib/postgresql/*/bin, what pg_config says, and the directories of PATH.
std::vector<std::string> usual_program_directories();

// The newest first; those older than server_major_min too, so that a message can name them.
std::vector<ServerPrograms> find_server_programs(const std::vector<std::string>& directories);

// The output of `postgres --version`; empty if it cannot be run.
std::string version_line_of(const ServerPrograms& programs);

// "postgres (PostgreSQL) 15.20 (Debian 15.20-0+deb12u1)" → 15.
std::optional<int> parse_server_major(const std::string& version_line);

}  // namespace postrider::pg
