// What the inbox of a node does in the background: wakes consumers after messages were stored, and writes
// down what was refused. One loop; wake() from any thread.
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

  Duties(runtime::Loop& loop, pg::Link& link, Rejections& rejections);

  void start();
  runtime::Task<void> stop();

  void wake(std::vector<SourceId> sources);  // any thread

 private:
  void wake_soon(const std::vector<SourceId>& sources);
  runtime::Task<void> notify();
  runtime::Task<void> run();
  runtime::Task<void> write_rejections();

  runtime::Loop& loop_;
  pg::Link& link_;
  Rejections& rejections_;
  std::set<SourceId> to_wake_;
  runtime::Timer wake_timer_;
  runtime::Wakeup wakeup_;
  bool is_stopping_ = false;
  runtime::TaskGroup tasks_;
};

}  // namespace postrider::inbox
