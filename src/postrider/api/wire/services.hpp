// Everything that the handlers of one API loop use. Built and owned by server/.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "postrider/api/wire/metrics.hpp"
#include "postrider/api/wire/shares.hpp"
#include "postrider/api/wire/watch.hpp"
#include "postrider/config/config.hpp"
#include "postrider/http/client/client.hpp"
#include "postrider/http/client/guard.hpp"
#include "postrider/http/client/resolver.hpp"
#include "postrider/inbox/source_cache.hpp"
#include "postrider/pg/pool.hpp"
#include "postrider/registry/catalogue.hpp"
#include "postrider/registry/context.hpp"
#include "postrider/registry/control_log.hpp"
#include "postrider/registry/key_cache.hpp"
#include "postrider/registry/secret_resolver.hpp"
#include "postrider/registry/tenant_cache.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/worker.hpp"

namespace postrider::base {
class RateLimiter;
}
namespace postrider::publish {
class Publisher;
}  // namespace postrider::publish
namespace postrider::inbox {
class Receiver;
class Rejections;
class Waiters;
}  // namespace postrider::inbox
namespace postrider::web {
class SignInGuard;
}

namespace postrider::api {

// References outlive the Api; all but config, guard and metrics belong to this loop alone.
struct Services {
  runtime::Loop& loop;
  pg::Pool& pool;  // for calls of people and programs that manage things; publishing has a link of its own
  // For keys, sources and the catalogue: short statements only, so that no call waits long.
  pg::Link& lookups;
  registry::Context registry;
  const config::Config& config;
  const http::AddressGuard& guard;
  const telemetry::Metrics& metrics;
  http::Resolver* resolver = nullptr;  // without one, names are not looked up when a URL is saved
  http::Client* client = nullptr;      // without one, there is no route to try an endpoint
  // Without one, secrets that are references cannot be used here.
  registry::SecretResolver* secrets = nullptr;
  publish::Publisher* publisher = nullptr;  // without one, there are no routes to publish
  inbox::Receiver* receiver = nullptr;      // without one, inbound webhooks are not taken
  inbox::Rejections* rejections = nullptr;  // counts rejected inbound webhooks
  inbox::Waiters* waiters = nullptr;        // without one, claims do not wait for messages
  runtime::Worker* worker = nullptr;        // without one, large inbound bodies are verified on the loop
  // Shared by the loops of a node. Without them no rate is enforced.
  base::RateLimiter* publish_rates = nullptr;  // by tenant, for the RateLimit headers
  base::RateLimiter* key_rates = nullptr;      // by the public ID of a key
  web::SignInGuard* sign_in_guard = nullptr;   // without one, failed sign-ins are not counted
  // A reason to send no requests to this node, besides the API's own checks (database, IDs). Optional.
  std::function<std::optional<std::string>()> why_not_ready = {};
  // A note for operators in /readyz although the node is ready; empty: none. Optional.
  std::function<std::string()> readiness_note = {};
  // Returns when this node sends according to what was just committed, or after a few seconds. Optional.
  std::function<runtime::Task<void>(registry::ChangedEndpoints)> take_effect = {};

  Metrics own_metrics{metrics};
  registry::KeyCache keys = {};
  registry::KeyCache sessions = {};  // by the hash of the cookie's token
  registry::TenantCache tenants = {};
  registry::CatalogueCache catalogue = {};
  int contact_links_in_use = 0;  // confirmations and similar requests, which need no key
  inbox::SourceCache sources = {};

  // Per loop; in all, and of one tenant or unbound key.
  Shares streams{{.total = 50, .each = 10}};
  Shares exports{{.total = 20, .each = 5}};
  Shares tests{{.total = 20, .each = 5}};
  Shares waiting_by_holder{{.each = 64}};  // calls that wait for a connection of the pool
  Shares waiting_by_key{{.each = 32}};     // so that one key of a tenant leaves room for the others
  Watches watches = {};
};

}  // namespace postrider::api
