// Reads the registry's control log every 250 ms, whatever LISTEN does, so that a pause, a new URL or a
// revoked key acts on every node within a second.
#pragma once

#include <functional>

#include "postrider/pg/link.hpp"
#include "postrider/registry/control_log.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::cluster {

struct RegistryEvents {
  std::function<void(const registry::Change&)> changed;
  std::function<void()>
      missed;  // the log was trimmed behind us, or may be another one: load everything afresh
};

class RegistryFollower {
 public:
  static constexpr std::chrono::milliseconds kInterval{250};

  RegistryFollower(runtime::Loop& loop, pg::Link& link, RegistryEvents events);

  runtime::Task<void> begin();  // from here on nothing is missed
  void start();
  void wake() { wakeup_.notify(); }
  runtime::Task<void> stop();

  runtime::Task<void> run_once();

 private:
  runtime::Task<void> run();
  runtime::Task<void> serve_requests();

  pg::Link& link_;
  RegistryEvents events_;
  int64_t version_ = 0;
  uint64_t connection_ = 0;  // that the version was read over
  bool is_stopping_ = false;
  runtime::Wakeup wakeup_;
  runtime::TaskGroup tasks_;
};

}  // namespace postrider::cluster
