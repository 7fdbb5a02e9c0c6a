// The background work of a node's inbox: wakes consumers after messages were stored, records
// rejections and measures the lag. One loop; wake_consumers() from any thread.
#pragma once

#include <chrono>
#include <set>
#include <vector>

#include "postrider/inbox/rejections.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/service.hpp"

namespace postrider::inbox {

class Maintenance : public runtime::Service {
 public:
  // NOTIFY serialises every commit of the instance, so it comes after the commit and at most this often.
  static constexpr std::chrono::milliseconds kWakeInterval{5};
  static constexpr std::chrono::milliseconds kWriteInterval{2'000};

  struct Options {
    bool measures = true;  // the lag: one node is enough, more do no harm
  };
  Maintenance(runtime::Loop& loop, pg::Link& link, Rejections& rejections, const telemetry::Metrics& metrics,
              Options options);

  void wake_consumers(std::vector<SourceId> sources);  // any thread

 private:
  runtime::Task<runtime::SteadyTime> pass(runtime::SteadyTime now) override;
  runtime::SteadyTime first_pass_at(runtime::SteadyTime now) const override { return now + kWriteInterval; }
  runtime::Task<void> interrupt() override;
  runtime::Task<void> finish() override { co_await record(); }
  void wake_soon(const std::vector<SourceId>& sources);
  runtime::Task<void> notify();
  runtime::Task<void> record();
  runtime::Task<void> measure();

  pg::Link& link_;
  Rejections& rejections_;
  Metrics metrics_;
  Options options_;
  std::set<SourceId> to_wake_;
  runtime::Timer wake_timer_;
};

}  // namespace postrider::inbox
