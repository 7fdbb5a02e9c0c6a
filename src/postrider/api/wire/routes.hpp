// Adding routes, and the context that handlers get.
//
//   void add_tenant_routes(Routes& routes) {
//     routes.add(Method::post, "/v1/tenants", Access::operate, create);
//   }
//
// Before a handler runs, the key was looked up and allowed to do this, and a key that is bound to a tenant is
// in its own tenant, where routes for operators are closed to it. A handler may throw pg::Error: it is
// turned into a problem (problems.hpp), and a call that was rolled back for a temporary reason is repeated.
#pragma once

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "postrider/api/wire/authenticate.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/services.hpp"
#include "postrider/http/request.hpp"
#include "postrider/http/response.hpp"
#include "postrider/http/server/problem.hpp"
#include "postrider/http/server/router.hpp"
#include "postrider/registry/caller.hpp"
#include "postrider/registry/keys.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::api {

using http::Method;
using http::Response;
using runtime::Task;

enum class Access {
  everyone,       // no key
  authenticated,  // any valid key
  read,           // reader, customer, operator, admin
  publish,        // publisher, operator, admin
  customer,       // customer, operator, admin: what a customer manages itself
  operate,        // operator, admin
  operators,      // the same, but no key that is bound to a tenant, not even in its own
  administer,     // admin
};
std::string_view label(Access access);            // as `x-access` in the OpenAPI document
bool allows(registry::Role role, Access access);  // by role alone; not for Access::everyone
// By role, and by the half of a customer's rights that a token has. Whether the route is in its tenant is
// another question.
bool allows(const registry::Principal& principal, Access access);

// The access of bound keys to a route.
enum class BoundKeys {
  by_path,   // its own tenant's paths; nothing where the path has no tenant
  confined,  // the handler itself keeps them to call.principal.tenant
};

struct Call;

struct RouteOptions {
  size_t body_bytes_max = 0;  // 0: the server's limit
  BoundKeys bound_keys = BoundKeys::by_path;
  // A successful response is sent when the change is in force on this node: after the response to a pause
  // nothing is sent.
  bool changes_sending = false;
  // Decides about a large body instead of the key, for routes without one. May throw pg::Error and
  // CallRejected.
  Task<http::Admission> (*admit)(Call& head) = nullptr;
};

// Ends a call from any depth; the response is its problem.
class CallRejected : public std::exception {
 public:
  explicit CallRejected(http::Problem problem) : problem_(std::move(problem)) {}
  const http::Problem& problem() const { return problem_; }
  const char* what() const noexcept override { return problem_.detail.c_str(); }

 private:
  http::Problem problem_;
};

// A copy is valid as long as the request: until the response was sent.
struct Call {
  Services& services;
  http::Request& request;
  std::optional<Credential> credential = {};  // of the principal
  registry::Principal principal = {};         // not for Access::everyone
  bool is_cursor_open = false;                // also when the call is made again

  // Path parameters, decoded.
  std::string parameter(std::string_view name) const { return std::string(request.path_parameter(name)); }
  std::string tenant() const { return parameter("tenant"); }

  // The caller of a change, for the registry: the key, its address, the request and its If-Match.
  registry::Caller caller() const;

  Response reject(const http::Problem& problem) const {
    return http::problem(request, with_id(problem, request));
  }
  // A connection for this call alone. A call of many steps takes one for each, so that others have their turn
  // in between. Throws pg::Error, and CallRejected: 429 when too many calls of the same tenant or key wait,
  // 401 when the key is no longer valid.
  Task<pg::Pool::Handle> database() const;
};

using CallHandler = Task<Response> (*)(Call& call);

class Routes {
 public:
  Routes(http::Router& router, Services& services) : router_(router), services_(services) {}

  void add(Method method, std::string pattern, Access access, CallHandler handler, RouteOptions options = {});
  // A public page for people: not an operation of the API, and not in its document.
  void add_page(std::string pattern, CallHandler handler);
  Services& services() { return services_; }

  struct Entry {
    Method method;
    std::string pattern;
    Access access;
    BoundKeys bound_keys;
  };
  // In the order they were added.
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  http::Router& router_;
  Services& services_;
  std::vector<Entry> entries_;
};

// One per file of this folder.
void add_tenant_routes(Routes& routes);
void add_endpoint_routes(Routes& routes);
void add_try_endpoint_routes(Routes& routes);
void add_import_routes(Routes& routes);
void add_subscription_routes(Routes& routes);
void add_secret_routes(Routes& routes);
void add_event_type_routes(Routes& routes);
void add_event_routes(Routes& routes);
void add_event_read_routes(Routes& routes);
void add_replay_routes(Routes& routes);
void add_erasure_routes(Routes& routes);
void add_contact_routes(Routes& routes);
void add_contact_page_routes(Routes& routes);
void add_attempt_routes(Routes& routes);
void add_delivery_routes(Routes& routes);
void add_delivery_action_routes(Routes& routes);
void add_dead_letter_routes(Routes& routes);
void add_dead_letter_replay_routes(Routes& routes);
void add_stats_routes(Routes& routes);
void add_brake_routes(Routes& routes);
void add_search_routes(Routes& routes);
void add_stream_routes(Routes& routes);
void add_node_routes(Routes& routes);
void add_outbox_routes(Routes& routes);
void add_outbox_capture_routes(Routes& routes);
void add_audit_routes(Routes& routes);
void add_key_routes(Routes& routes);
void add_me_routes(Routes& routes);
void add_token_routes(Routes& routes);
void add_tenant_export_routes(Routes& routes);
void add_health_routes(Routes& routes);
void add_openapi_routes(Routes& routes);
void add_page_routes(Routes& routes);
void add_console_session_routes(Routes& routes);
void add_portal_session_routes(Routes& routes);
void add_portal_link_routes(Routes& routes);
void add_source_routes(Routes& routes);
void add_inbound_routes(Routes& routes);
void add_inbox_routes(Routes& routes);

// All of them.
void add_routes(Routes& routes);

}  // namespace postrider::api
