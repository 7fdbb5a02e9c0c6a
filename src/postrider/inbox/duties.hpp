// What the inbox of a node does in the background: wakes consumers after messages were stored, writes down
// what was refused and measures the lag. One loop; wake() from any thread.
#pragma once

#include <chrono>
#include <set>
#include <vector>

#include "postrider/inbox/rejections.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::inbox {

class Duties {
 public:
  // NOTIFY serialises every commit of the instance, so it comes after the commit and at most this often.
  static constexpr std::chrono::milliseconds kWakeInterval{5};
  static constexpr std::chrono::milliseconds kWriteInterval{2'000};

  struct Options {
    bool measures = true;  // the lag: one node is enough, more do no harm
  };
  Duties(runtime::Loop& loop, pg::Link& link, Rejections& rejections, const telemetry::Metrics& metrics,
         Options options);

  void start();
  runtime::Task<void> stop();

  void wake(std::vector<SourceId> sources);  // any thread

 private:
  void wake_soon(const std::vector<SourceId>& sources);
  runtime::Task<void> notify();
  runtime::Task<void> run();
  runtime::Task<void> run_once();
  runtime::Task<void> measure();

  runtime::Loop& loop_;
  pg::Link& link_;
  Rejections& rejections_;
  const telemetry::Metrics& metrics_;
  Options options_;
  std::set<SourceId> to_wake_;
  runtime::Timer wake_timer_;
  runtime::Wakeup wakeup_;
  bool is_stopping_ = false;
  runtime::TaskGroup tasks_;
};

}  // namespace postrider::inbox
