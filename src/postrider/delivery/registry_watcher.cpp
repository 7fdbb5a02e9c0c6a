#include "postrider/delivery/registry_watcher.hpp"

#include <utility>

#include "postrider/pg/error.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::delivery {

RegistryWatcher::RegistryWatcher(runtime::Loop& loop, pg::Link& link, WatcherEvents events)
    : link_(link), events_(std::move(events)), wakeup_(loop) {}

runtime::Task<void> RegistryWatcher::begin() {
  connection_ = link_.connection_number();
  version_ = co_await registry::current_version(link_);
}

void RegistryWatcher::start() {
  tasks_.spawn(run());
}

runtime::Task<void> RegistryWatcher::run() {
  while (!is_stopping_) {
    co_await run_once();
    if (!is_stopping_) co_await wakeup_.wait_for(kInterval);
  }
}

runtime::Task<void> RegistryWatcher::run_once() {
  try {
    if (const uint64_t connection = link_.connection_number(); connection != connection_) {
      // Maybe another server, which lacks the last changes and gives their versions to other ones.
      version_ = co_await registry::current_version(link_);
      connection_ = connection;
      events_.missed();
    }
    size_t count = 0;
    do {
      const auto changes = co_await registry::read_changes(link_, version_);
      count = changes.size();
      if (count > 0 && changes.front().version != version_ + 1) events_.missed();
      for (const registry::Change& change : changes) {
        version_ = change.version;
        events_.changed(change);
      }
    } while (count == static_cast<size_t>(registry::changes_max));
  } catch (const pg::Error& error) {
    if (error.kind() != pg::Kind::unavailable)
      telemetry::log_warn("control_log_failed").field("error", error.what());
  }
}

runtime::Task<void> RegistryWatcher::stop() {
  is_stopping_ = true;
  wakeup_.notify();
  co_await tasks_.join();
}

}  // namespace postrider::delivery
