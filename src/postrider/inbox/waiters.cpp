#include "postrider/inbox/waiters.hpp"

#include <utility>

namespace postrider::inbox {

runtime::Task<void> Waiters::wait(SourceId source, base::SteadyTime until) {
  if (is_stopping_) co_return;
  Waiting waiting{std::move(source), runtime::Wakeup(loop_)};
  const auto place = waiting_.insert(waiting_.end(), &waiting);
  co_await waiting.wakeup.wait_until(until);
  waiting_.erase(place);
}

// A woken one continues at once and leaves the list, so the next is looked up first.
void Waiters::wake(std::string_view source) {
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    Waiting* waiting = *next++;
    if (waiting->source == source) waiting->wakeup.notify();
  }
}

void Waiters::stop() {
  is_stopping_ = true;
  wake_all();
}

void Waiters::wake_all() {
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    Waiting* waiting = *next++;
    waiting->wakeup.notify();
  }
}

}  // namespace postrider::inbox
