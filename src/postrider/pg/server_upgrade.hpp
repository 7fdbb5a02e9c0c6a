// A minor upgrade of the installed Postgres under a running server. Its new backends then load libraries of
// another version, so that functions in PL/pgSQL fail until the server is restarted.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "postrider/pg/server_programs.hpp"

namespace postrider::pg {

struct ServerUpgrade {
  std::string running;    // "15.18 (Debian 15.18-0+deb12u1)"
  std::string installed;  // the same form
};

std::string installed_version(const ServerPrograms& programs);  // empty: unknown
std::string running_version(const std::string& url);            // blocks; empty: the server cannot be reached

// No value if both are the same, or if one is unknown.
std::optional<ServerUpgrade> compare_versions(std::string running, std::string installed);

// Decides when to restart the server: once per installed version, and not while files are still being
// replaced.
class UpgradeWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;
  explicit UpgradeWatch(std::chrono::milliseconds settle) : settle_(settle) {}

  bool should_restart(const std::optional<ServerUpgrade>& upgrade, Time now);

 private:
  std::chrono::milliseconds settle_;
  std::string seen_, restarted_for_;  // installed versions
  Time seen_at_{};
};

}  // namespace postrider::pg
