// Writes the sources of the configuration file to the database: once when the node starts, and then every few
// seconds those that could not be written yet, for example because the tenant that they forward to does not
// exist. One loop.
#pragma once

#include <chrono>
#include <map>
#include <vector>

#include "postrider/inbox/sources.hpp"
#include "postrider/runtime/service.hpp"

namespace postrider::inbox {

class SourceMaintenance : public runtime::Service {
 public:
  static constexpr std::chrono::milliseconds kInterval{2'000};

  SourceMaintenance(runtime::Loop& loop, pg::Link& link, const registry::Context& context,
                    std::vector<ConfiguredSource> sources);

  // Waits for the database until then, runs a pass, and starts the service if sources are left.
  runtime::Task<void> apply_at_start(base::SteadyTime until);

 private:
  // Applies the sources that are left. One that fails stays for the next pass, with a line in the log.
  runtime::Task<runtime::SteadyTime> pass(runtime::SteadyTime now) override;
  runtime::SteadyTime first_pass_at(runtime::SteadyTime now) const override { return now + kInterval; }
  void report(const SourceId& id, const std::string& why);

  pg::Link& link_;
  registry::Context context_;
  std::vector<ConfiguredSource> left_;
  std::map<SourceId, std::string> reported_;
};

}  // namespace postrider::inbox
