#include "postrider/cluster/peer_notifier.hpp"

#include "postrider/cluster/publish_log.sql.hpp"
#include "postrider/pg/error.hpp"

namespace postrider::cluster {

void PeerNotifier::notify_soon() {
  if (!timer_.is_set()) timer_.call_after(kInterval, [this] { tasks_.spawn(notify()); });
}

runtime::Task<void> PeerNotifier::notify() {
  try {
    co_await link_.run(sql::wake_others{});
  } catch (const pg::Error&) {
    // Others poll; a lost wake-up costs them 100 ms.
  }
}

runtime::Task<void> PeerNotifier::stop() {
  timer_.cancel();
  co_await tasks_.join();
}

}  // namespace postrider::cluster
