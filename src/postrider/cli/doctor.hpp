// The findings of `postrider doctor`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "postrider/config/config.hpp"

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

// The database and what it says about the cluster. Never throws: what fails is a finding.
void check_database(const config::Config& config, Findings& findings);

}  // namespace postrider::cli
