// The thread for work that nobody waits for: fan-out of very wide events, replays, notices, duties of the
// inbox, and upkeep.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "postrider/config/config.hpp"
#include "postrider/delivery/engine.hpp"
#include "postrider/inbox/duties.hpp"
#include "postrider/publish/fanout.hpp"
#include "postrider/publish/rates.hpp"

namespace postrider::server {

struct BackgroundTools {
  const config::Config& config;
  std::string database_url;
  telemetry::Metrics& metrics;
  delivery::Engine& engine;
  inbox::Rejections& rejections;
  model::IdSource& ids;
  publish::PublishRates& rates;
  // Called on this thread when messages of a source were stored, here or on another node.
  std::function<void(std::string source)> on_inbox;
  const crypto::MasterKeys& keys;
  const http::AddressGuard& guard;
  const http::TlsContext& tls;
  std::vector<inbox::ConfiguredSource> sources;
};

class BackgroundThread {
 public:
  explicit BackgroundThread(BackgroundTools tools);
  ~BackgroundThread();

  void start();  // when it returns, the sources of the configuration file are there, or tried again
  void stop();
  publish::WideFanout& fanout();
  inbox::Duties& inbox_duties();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postrider::server
