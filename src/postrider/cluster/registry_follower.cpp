#include "postrider/cluster/registry_follower.hpp"

#include <utility>

#include "postrider/pg/error.hpp"
#include "postrider/registry/requests.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::cluster {

RegistryFollower::RegistryFollower(runtime::Loop& loop, pg::Link& link, RegistryEvents events)
    : Service(loop), link_(link), events_(std::move(events)) {}

runtime::Task<void> RegistryFollower::begin() {
  connection_ = link_.connection_number();
  version_ = co_await registry::current_version(link_);
}

runtime::Task<runtime::SteadyTime> RegistryFollower::pass(runtime::SteadyTime) {
  co_await serve_requests();
  co_await follow();
  co_return base::BootClock::now() + kInterval;
}

runtime::Task<void> RegistryFollower::serve_requests() {
  try {
    auto serving = registry::serve_requests(link_);
    co_await serving;
  } catch (const pg::Error& error) {
    if (error.kind() != pg::Kind::unavailable)
      telemetry::log_warn("requests_failed").field("error", error.what());
  }
}

runtime::Task<void> RegistryFollower::follow() {
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

}  // namespace postrider::cluster
