// Reads the brakes whenever they change, and passes them on. While the database is unavailable it retries
// until it succeeds: a brake that is set must take effect.
#pragma once

#include <functional>

#include "postrider/delivery/lanes/choose.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::delivery {

class BrakeReader {
 public:
  using OnRead = std::function<void(const Brakes&)>;
  BrakeReader(runtime::Loop& loop, pg::Link& link, OnRead on_read);

  runtime::Task<void> begin();  // returns when they were read for the first time
  void read_soon();             // they changed
  runtime::Task<void> stop();   // after it, read_soon() does nothing

 private:
  runtime::Task<void> run();

  pg::Link& link_;
  OnRead on_read_;
  bool is_stale_ = false;  // they changed since they were last asked for
  bool is_stopping_ = false;
  runtime::Wakeup pause_;
  runtime::TaskGroup tasks_;  // one at most
};

}  // namespace postrider::delivery
