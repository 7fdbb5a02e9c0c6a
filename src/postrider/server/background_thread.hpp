// The thread for work that no request waits for: wide fan-out, replays, notices, maintenance of the
// inbox, and upkeep.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "postrider/base/rate_limiter.hpp"
#include "postrider/config/config.hpp"
#include "postrider/delivery/engine.hpp"
#include "postrider/inbox/maintenance.hpp"
#include "postrider/publish/fanout.hpp"
#include "postrider/upkeep/recipients.hpp"

namespace postrider::server {

struct BackgroundTools {
  const config::Config& config;
  std::string database_url;
  telemetry::Metrics& metrics;
  delivery::Engine& engine;
  inbox::Rejections& rejections;
  model::IdSource& ids;
  base::RateLimiter& rates;
  // Called on this thread when messages of a source were stored, here or on another node.
  std::function<void(std::string source)> on_inbox;
  const crypto::MasterKeys& keys;
  const http::AddressGuard& guard;
  const http::TlsContext& tls;
  std::vector<inbox::ConfiguredSource> sources;
  upkeep::RecipientNotes& recipients;
};

class BackgroundThread {
 public:
  explicit BackgroundThread(BackgroundTools tools);
  ~BackgroundThread();

  void start();  // when it returns, the sources of the configuration file are there, or tried again
  void stop();
  publish::WideFanout& fanout();
  inbox::Maintenance& inbox_maintenance();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postrider::server
