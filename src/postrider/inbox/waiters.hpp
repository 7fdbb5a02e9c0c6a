// Consumers that wait over HTTP for messages of a source. One per loop, used on its thread only.
#pragma once

#include <list>
#include <string>
#include <string_view>

#include "postrider/inbox/sources.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::inbox {

class Waiters {
 public:
  explicit Waiters(runtime::Loop& loop) : loop_(loop) {}

  // Until a message of the source was stored somewhere, the time has come, or the server stops.
  runtime::Task<void> wait(SourceId source, base::SteadyTime until);
  void wake(std::string_view source);
  void wake_all();
  void stop();  // wakes all; later calls do not wait
  bool is_stopping() const { return is_stopping_; }

 private:
  struct Waiting {
    SourceId source;
    runtime::Wakeup wakeup;
  };
  runtime::Loop& loop_;
  std::list<Waiting*> waiting_;
  bool is_stopping_ = false;
};

}  // namespace postrider::inbox
