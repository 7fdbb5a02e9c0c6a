// Reads the registry's control log every 250 ms, whatever LISTEN does, so that a pause, a new URL or a
// revoked key acts on every node within a second.
#pragma once

#include <functional>

#include "postrider/pg/link.hpp"
#include "postrider/registry/control_log.hpp"
#include "postrider/runtime/service.hpp"

namespace postrider::cluster {

struct RegistryEvents {
  std::function<void(const registry::Change&)> changed;
  // The log was trimmed past our position, or may be another one: reload everything.
  std::function<void()> missed;
};

class RegistryFollower : public runtime::Service {
 public:
  static constexpr std::chrono::milliseconds kInterval{250};

  RegistryFollower(runtime::Loop& loop, pg::Link& link, RegistryEvents events);

  runtime::Task<void> begin();  // from here on nothing is missed

 private:
  runtime::Task<runtime::SteadyTime> pass(runtime::SteadyTime now) override;
  runtime::Task<void> serve_requests();
  runtime::Task<void> follow();

  pg::Link& link_;
  RegistryEvents events_;
  int64_t version_ = 0;
  uint64_t connection_ = 0;  // that the version was read over
};

}  // namespace postrider::cluster
