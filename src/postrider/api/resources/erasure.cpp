// DELETE …/events/{event}/payload and …/tenants/{tenant}/payloads: erasure for privacy requests.
//
// The body is deleted and pending deliveries are canceled. ID, type, times and attempts stay, as proof that
// something was sent and when. The audit log proves the erasure: when it happened and who requested it.
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/page.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/history/events.sql.hpp"
#include "postrider/registry/audit.hpp"
#include "postrider/registry/tenants.hpp"
#include "postrider/telemetry/log.hpp"
#include "postrider/upkeep/erasure.sql.hpp"

namespace postrider::api {

namespace {

using namespace std::chrono_literals;

constexpr int32_t kEventsAtOnce = 200;
constexpr auto kPatience = 20s;  // then the caller retries

struct Erased {
  int64_t events = 0, canceled = 0;
  bool is_complete = true;
};

// The audit log's entry for an erasure.
struct Erasure {
  std::string_view action;
  const model::TenantId& tenant;
  const std::string& object;
};
pg::Batch proof(const Call& call, const Erasure& erasure, const Erased& erased) {
  registry::Snapshot after;
  after.add("erased", erased.events)
      .add("canceled_deliveries", erased.canceled)
      .add("is_complete", erased.is_complete);
  pg::Batch batch;
  registry::add_audit(batch, call.caller(),
                      {.action = erasure.action,
                       .tenant = erasure.tenant,
                       .object = erasure.object,
                       .after = std::move(after)});
  return batch;
}

Response respond(const Call& call, const std::string& object, const Erased& erased) {
  telemetry::log_info("payloads_erased")
      .field("object", object)
      .field("events", erased.events)
      .field("canceled", erased.canceled)
      .field("key_id", call.principal.key.public_id());
  JsonObject json;
  json.add("erased", erased.events)
      .add("canceled_deliveries", erased.canceled)
      .add("is_complete", erased.is_complete);
  return Response::json(200, json.text());
}

Task<Response> erase_event(Call& call) {
  const model::TenantId tenant = call.tenant();
  const std::string wanted = call.parameter("event");
  const auto own = model::EventId::from_public_id(wanted);
  std::optional<base::Uuid> uuid;
  if (own) uuid = own->uuid;
  const pg::Pool::Handle lease = co_await call.database();
  const auto found =
      co_await lease->run(history::sql::find_event{.tenant = tenant, .public_id = wanted, .id = uuid});
  if (found.empty()) co_return call.reject(unknown("event"));
  pg::Transaction transaction = co_await lease->begin();
  const auto rows = co_await transaction.run(upkeep::sql::erase_event{.event = found.front().id});
  const auto row = rows.front();
  const Erased erased{row.erased, row.canceled};
  const Erasure erasure{"event.erase", tenant, wanted};
  pg::Batch noting = proof(call, erasure, erased);
  co_await transaction.run(std::move(noting));
  co_await transaction.commit();
  co_return respond(call, wanted, erased);
}

// False: there is no such tenant. The audit log has the request before anything is erased, and the counts
// afterwards: should the work be interrupted, the log shows it.
Task<bool> begin_erasure(const Call& call, const model::TenantId& tenant) {
  const pg::Pool::Handle lease = co_await call.database();
  const std::optional<registry::Tenant> known = co_await registry::find_tenant(*lease, tenant);
  if (!known) co_return false;
  pg::Batch asked;
  registry::add_audit(asked, call.caller(),
                      {.action = "tenant.erase_begun", .tenant = tenant, .object = tenant});
  co_await lease->run(std::move(asked));
  co_return true;
}

// Erases the next events after that id, on a connection of its own, so that others have their turn in
// between. Returns the ID of the last one, or no value if there are no more.
Task<std::optional<base::Uuid>> erase_some(const Call& call, base::Uuid after, Erased& erased) {
  const pg::Pool::Handle lease = co_await call.database();
  const model::TenantId tenant = call.tenant();
  const auto rows =
      co_await lease->run(upkeep::sql::erase_next{.tenant = tenant, .after = after, .rows = kEventsAtOnce});
  const auto row = rows.front();
  erased.events += row.erased;
  erased.canceled += row.canceled;
  co_return row.last_id;
}

Task<Response> erase_tenant(Call& call) {
  const model::TenantId tenant = call.tenant();
  const bool is_known = co_await begin_erasure(call, tenant);
  if (!is_known) co_return call.reject(unknown("tenant"));
  Erased erased;
  std::optional<base::Uuid> last = base::Uuid();
  const base::SteadyTime deadline = base::BootClock::now() + kPatience;
  while (last && base::BootClock::now() < deadline) last = co_await erase_some(call, *last, erased);
  erased.is_complete = !last;
  const Erasure erasure{"tenant.erase", tenant, tenant};
  pg::Batch noting = proof(call, erasure, erased);
  const pg::Pool::Handle lease = co_await call.database();
  co_await lease->run(std::move(noting));
  co_return respond(call, tenant, erased);
}

}  // namespace

void add_erasure_routes(Routes& routes) {
  const bool is_for_customers = routes.services().config.customer_may_erase;
  const Access access = is_for_customers ? Access::customer : Access::operate;
  routes.add(Method::delete_, "/v1/tenants/{tenant}/events/{event}/payload", access, erase_event);
  routes.add(Method::delete_, "/v1/tenants/{tenant}/payloads", access, erase_tenant);
}

}  // namespace postrider::api
