#include "postrider/api/api.hpp"

#include <algorithm>
#include <utility>

#include "postrider/api/wire/routes.hpp"
#include "postrider/inbox/waiters.hpp"

namespace postrider::api {

void add_routes(Routes& routes) {
  add_health_routes(routes);
  add_openapi_routes(routes);
  add_page_routes(routes);
  add_console_session_routes(routes);
  add_portal_session_routes(routes);
  add_portal_link_routes(routes);
  add_tenant_routes(routes);
  add_endpoint_routes(routes);
  add_try_endpoint_routes(routes);
  add_import_routes(routes);
  add_subscription_routes(routes);
  add_secret_routes(routes);
  add_event_type_routes(routes);
  add_event_routes(routes);
  add_event_read_routes(routes);
  add_replay_routes(routes);
  add_erasure_routes(routes);
  add_contact_routes(routes);
  add_contact_page_routes(routes);
  add_attempt_routes(routes);
  add_delivery_routes(routes);
  add_delivery_action_routes(routes);
  add_dead_letter_routes(routes);
  add_dead_letter_replay_routes(routes);
  add_stats_routes(routes);
  add_brake_routes(routes);
  add_search_routes(routes);
  add_stream_routes(routes);
  add_node_routes(routes);
  add_source_routes(routes);
  add_inbound_routes(routes);
  add_inbox_routes(routes);
  add_outbox_routes(routes);
  add_outbox_capture_routes(routes);
  add_audit_routes(routes);
  add_key_routes(routes);
  add_me_routes(routes);
  add_token_routes(routes);
  add_tenant_export_routes(routes);
}

Api::Api(Services services) : services_(std::move(services)), routes_(router_, services_) {
  add_routes(routes_);
}

Api::~Api() = default;

void Api::apply(std::span<const registry::Change> changes) {
  services_.keys.apply(changes);
  services_.sessions.apply(changes);
  services_.tenants.apply(changes);
  services_.sources.apply(changes);
  services_.catalogue.apply(changes);
  const auto concerns_callers = [](const registry::Change& change) {
    return registry::concerns_keys(change) || change.kind == registry::ChangeKind::tenant;
  };
  if (std::none_of(changes.begin(), changes.end(), concerns_callers)) return;
  services_.watches.wake();
  if (services_.waiters) services_.waiters->wake_all();  // they look their key up before they look again
}

}  // namespace postrider::api
