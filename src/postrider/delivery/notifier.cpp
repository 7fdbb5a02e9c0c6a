#include "postrider/delivery/notifier.hpp"

#include "postrider/delivery/follow.sql.hpp"
#include "postrider/pg/error.hpp"

namespace postrider::delivery {

void Notifier::notify_soon() {
  if (!timer_.is_set()) timer_.call_after(kInterval, [this] { tasks_.spawn(notify()); });
}

runtime::Task<void> Notifier::notify() {
  try {
    co_await link_.run_one(sql::wake_others);
  } catch (const pg::Error&) {
    // Others poll; a lost wake-up costs them 100 ms.
  }
}

runtime::Task<void> Notifier::stop() {
  timer_.cancel();
  co_await tasks_.join();
}

}  // namespace postrider::delivery
