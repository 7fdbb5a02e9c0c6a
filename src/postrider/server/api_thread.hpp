// One thread of the HTTP API: server, handlers and publisher on a loop of their own.
#pragma once

#include <functional>
#include <memory>

#include "postrider/api/api.hpp"
#include "postrider/config/config.hpp"
#include "postrider/delivery/engine.hpp"
#include "postrider/http/server/server.hpp"
#include "postrider/inbox/maintenance.hpp"
#include "postrider/publish/fanout.hpp"
#include "postrider/publish/publisher.hpp"
#include "postrider/server/database.hpp"
#include "postrider/upkeep/recipients.hpp"
#include "postrider/web/sign_in_guard.hpp"

namespace postrider::server {

// All of it outlives the thread.
struct ApiTools {
  const config::Config& config;
  std::string database_url;
  const crypto::MasterKeys& keys;
  const http::AddressGuard& guard;
  const http::TlsContext& tls;
  telemetry::Metrics& metrics;
  model::IdSource& ids;
  delivery::Engine& engine;
  publish::WideFanout& fanout;
  base::RateLimiter& rates;      // by tenant
  base::RateLimiter& key_rates;  // by key
  inbox::Rejections& rejections;
  inbox::Maintenance& inbox_maintenance;
  const http::Listener& listener;
  registry::SecretResolver& secrets;
  runtime::Worker& worker;
  const Database& database;
  const upkeep::RecipientNotes& recipients;
  web::SignInGuard& sign_in_guard;
};

class ApiThread {
 public:
  explicit ApiThread(ApiTools tools);
  ~ApiThread();

  void start();
  void apply(const registry::Change& change);  // any thread
  void post(std::function<void()> job);        // any thread; runs on this one
  void wake_consumers(std::string source);     // any thread; messages of the source were stored
  // Requests in progress get their responses, up to the deadline; nothing new is accepted.
  void stop(base::SteadyTime deadline);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postrider::server
