// The delivery engine of a node: registration and leases, discovery, registry changes, and the shards.
//
// Threads: one control loop (leases, publish log, registry changes) and one loop per shard. start() and
// stop() are called from another thread and block; offer() and committed() may be called from any.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "postrider/config/config.hpp"
#include "postrider/crypto/master_keys.hpp"
#include "postrider/http/client/guard.hpp"
#include "postrider/http/client/tls.hpp"
#include "postrider/model/handoff.hpp"
#include "postrider/model/id_source.hpp"
#include "postrider/registry/control_log.hpp"
#include "postrider/registry/secret_resolver.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"
#include "postrider/telemetry/metrics.hpp"

namespace postrider::delivery {

// The engine's dependencies. All of them outlive the engine.
struct EngineTools {
  const config::Config& config;
  std::string database_url;         // of the database in use, the private one included
  std::string direct_database_url;  // not through a pooler: leases and LISTEN
  const crypto::MasterKeys& keys;
  const http::AddressGuard& guard;
  const http::TlsContext& tls;
  model::IdSource& ids;
  telemetry::Metrics& metrics;
  registry::SecretResolver* secrets = nullptr;
};

class Engine : public model::Handoff {
 public:
  explicit Engine(EngineTools tools);
  ~Engine() override;

  model::NodeId id() const;

  // Registers the node, so that ids can be made, and starts to take buckets if it has the delivery role.
  // Throws pg::Error when the database cannot be reached within the time.
  void start(std::chrono::seconds database_wait);

  void offer(std::vector<model::CommittedDelivery> deliveries) override;
  // This node committed something for buckets that others may serve: they are woken soon, coalesced.
  void committed();
  // For a caller on another loop, `home`: returns there when this node sends according to what was just
  // committed, or after a few seconds without its database.
  runtime::Task<void> take_effect(registry::ChangedEndpoints changed, runtime::Loop& home);
  // Called on the control loop's thread for every change of the registry; set before start().
  void on_change(std::function<void(const registry::Change&)> callback);

  void post_to_shards(const std::function<void()>& job);  // runs once on the thread of each shard

  // Nothing new is sent; attempts in flight end and are settled, up to the deadline; leases are released.
  void drain(std::chrono::milliseconds timeout);
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postrider::delivery
