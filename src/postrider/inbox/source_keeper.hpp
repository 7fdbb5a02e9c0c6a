// Makes the sources of the configuration file so in the database: once when the node starts, and again every
// few seconds those that could not be made yet, because the tenant they forward to is not there, say. One
// loop.
#pragma once

#include <chrono>
#include <map>
#include <vector>

#include "postrider/inbox/sources.hpp"
#include "postrider/runtime/loop.hpp"

namespace postrider::inbox {

class SourceKeeper {
 public:
  static constexpr std::chrono::milliseconds kInterval{2'000};

  SourceKeeper(runtime::Loop& loop, pg::Link& link, const registry::Context& context,
               std::vector<ConfiguredSource> sources);

  // Waits for the database until then, makes a pass, and goes on in the background with what is left.
  runtime::Task<void> apply_at_start(base::SteadyTime until);
  runtime::Task<void> stop();
  // Those that are left; what fails stays for the next time, with a line in the log.
  runtime::Task<void> run_once();

 private:
  runtime::Task<void> run();
  void report(const SourceId& id, const std::string& why);

  pg::Link& link_;
  registry::Context context_;
  std::vector<ConfiguredSource> left_;
  std::map<SourceId, std::string> reported_;
  runtime::Wakeup wakeup_;
  bool is_stopping_ = false;
  runtime::TaskGroup tasks_;
};

}  // namespace postrider::inbox
