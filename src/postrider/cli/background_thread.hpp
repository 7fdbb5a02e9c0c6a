// The thread for work that nobody waits for: fan-out of very wide events, and upkeep.
#pragma once

#include <memory>

#include "postrider/config/config.hpp"
#include "postrider/delivery/node.hpp"
#include "postrider/publish/fanout.hpp"

namespace postrider::cli {

struct BackgroundTools {
  const config::Config& config;
  std::string database_url;
  telemetry::Metrics& metrics;
  delivery::Node& node;
};

class BackgroundThread {
 public:
  explicit BackgroundThread(BackgroundTools tools);
  ~BackgroundThread();

  void start();
  void stop();
  publish::WideFanout& fanout();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postrider::cli
