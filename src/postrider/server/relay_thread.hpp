// The two threads that relay outboxes: postrider's own, and those in other databases.
#pragma once

#include <memory>
#include <string>

#include "postrider/config/config.hpp"
#include "postrider/delivery/engine.hpp"
#include "postrider/publish/fanout.hpp"

namespace postrider::server {

struct RelayTools {
  const config::Config& config;
  std::string direct_database_url;  // sessions hold leases and LISTEN: not through a pooler
  const crypto::MasterKeys& keys;
  telemetry::Metrics& metrics;
  model::IdSource& ids;
  delivery::Engine& engine;
  publish::WideFanout& fanout;
};

class RelayThread {
 public:
  explicit RelayThread(RelayTools tools);
  ~RelayThread();

  void start();
  // A change of the registry. Any thread.
  void apply(const registry::Change& change);
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postrider::server
