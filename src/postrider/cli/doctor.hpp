// The findings of `postrider doctor`.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "postrider/config/config.hpp"
#include "postrider/pg/server_upgrade.hpp"

namespace postrider::cli {

struct Finding {
  enum class Level { ok, warning, problem };
  Level level;
  std::string about, what, advice;
};

class Findings {
 public:
  void good(std::string about, std::string what) {
    add(Finding::Level::ok, std::move(about), std::move(what), "");
  }
  void add(Finding::Level level, std::string about, std::string what, std::string advice) {
    findings_.push_back({level, std::move(about), std::move(what), std::move(advice)});
  }
  std::vector<Finding> take() { return std::move(findings_); }

 private:
  std::vector<Finding> findings_;
};

// Checks the database and the state of the cluster in it. Never throws: a failure is a finding.
void check_database(const config::Config& config, Findings& findings);

// A problem if another minor version of Postgres is installed than the private Postgres runs.
void add_upgrade(Findings& findings, const std::optional<pg::ServerUpgrade>& upgrade);

}  // namespace postrider::cli
