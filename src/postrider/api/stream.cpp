// GET /v1/stream and /v1/tenants/{tenant}/stream: server-sent events, for `tail`, `listen` and live views.
//
//   event: attempt    an exchange, of whichever node
//   event: event      a published event (of one tenant only); its id is what `after` and Last-Event-ID take
//   event: gap        there was more than is shown
//
// The database is asked twice a second for what is newest, a limited number of rows, so that a stream costs
// the same whatever happens; a reader that takes nothing for the server's write timeout is cut off.
#include <deque>
#include <set>
#include <utility>

#include "postrider/api/deliveries.sql.hpp"
#include "postrider/api/delivery_filter.hpp"
#include "postrider/api/page.hpp"
#include "postrider/api/problems.hpp"
#include "postrider/api/routes.hpp"
#include "postrider/api/stream.sql.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/registry/tenants.hpp"

namespace postrider::api {

namespace {

using namespace std::chrono_literals;

constexpr auto kInterval = 500ms;
constexpr auto kHeartbeat = 15s;
constexpr auto kLifetime = 1h;    // then the client comes again, with a key that is still good
constexpr auto kOverlap = 5s;     // ids are made before their commit: what is late is still found
constexpr auto kLookBack = 120s;  // attempts of deliveries made so long ago; later retries are not shown
constexpr int kRowsMax = 500;     // per look
constexpr size_t kSeenMax = 20'000;
constexpr int kStreamsMax = 50;  // per API thread

// What was shown lately.
class Seen {
 public:
  bool add(const std::string& key) {
    if (!keys_.insert(key).second) return false;
    order_.push_back(key);
    if (order_.size() <= kSeenMax) return true;
    keys_.erase(order_.front());
    order_.pop_front();
    return true;
  }
  bool empty() const { return order_.empty(); }

 private:
  std::set<std::string> keys_;
  std::deque<std::string> order_;
};

struct Streaming {
  explicit Streaming(Services& of) : services(of) {}

  Services& services;
  std::optional<model::TenantId> tenant;
  std::optional<base::Uuid> endpoint;
  bool sees_payloads = false;
  std::optional<base::Uuid> after_event;  // catch up from here; none: from now on
  base::SteadyTime ends_at{};
  Seen attempts, events;
  bool is_first_look = true;
};

struct Counted {
  explicit Counted(Services& services) : services_(services) { ++services_.streams; }
  ~Counted() { --services_.streams; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  Services& services_;
};

void append(std::string& out, std::string_view kind, std::string_view id, const std::string& json) {
  out += "event: ";
  out += kind;
  if (!id.empty()) {
    out += "\nid: ";
    out += id;
  }
  out += "\ndata: " + json + "\n\n";
}

pg::Batch newest_attempts(const Streaming& stream, base::Timestamp now) {
  base::Uuid before;
  before.bytes.fill(0xFF);
  const base::Uuid from = id_floor(now - kLookBack);
  pg::Batch batch;
  if (stream.endpoint)
    batch.with(sql::history_of_endpoint, before, from, kRowsMax, *stream.endpoint);
  else if (stream.tenant)
    batch.with(sql::history_of_tenant, before, from, kRowsMax, *stream.tenant);
  else
    batch.with(sql::history_of_all, before, from, kRowsMax);
  return batch;
}

std::string attempt_json(const pg::Rows& rows, size_t row, const DeliveryNames& names) {
  const model::EndpointId endpoint{rows.get<base::Uuid>(row, 3)};
  const model::EventId event{rows.get<base::Uuid>(row, 4)};
  const auto known_endpoint = names.endpoints.find(endpoint);
  const auto known_event = names.events.find(event);
  JsonObject json;
  json.add("delivery_id", model::DeliveryId{rows.get<base::Uuid>(row, 0)}.outside())
      .add("attempt", rows.get<int32_t>(row, 1))
      .add("outcome", rows.get<std::string_view>(row, 2))
      .add("tenant_id", rows.get<std::string_view>(row, 5))
      .add("endpoint_id",
           known_endpoint == names.endpoints.end() ? endpoint.outside() : known_endpoint->second.outside_id)
      .add("event_id", known_event == names.events.end() ? event.outside() : known_event->second.outside_id);
  if (known_event != names.events.end()) json.add("event_type", known_event->second.type);
  json.add("status_code", rows.get<std::optional<int32_t>>(row, 6))
      .add("error", rows.get<std::optional<std::string>>(row, 7))
      .add("started_at", rows.get<base::Timestamp>(row, 9))
      .add("latency_ms", rows.get<int32_t>(row, 10) / 1'000.0)
      .add("next_attempt_at", rows.get<std::optional<base::Timestamp>>(row, 12));
  return json.text();
}

// The oldest of the new ones first.
Task<void> look_at_attempts(Streaming& stream, pg::Link& link, std::string& out) {
  pg::Batch batch = newest_attempts(stream, stream.services.registry.ids.now());
  const std::vector<pg::Rows> found = co_await link.run(std::move(batch));
  const pg::Rows& rows = found.front();
  std::vector<size_t> fresh;
  for (size_t row = 0; row < rows.size(); ++row) {
    const std::string key = rows.get<base::Uuid>(row, 0).hex() + std::to_string(rows.get<int32_t>(row, 1));
    if (stream.attempts.add(key)) fresh.push_back(row);
  }
  if (std::exchange(stream.is_first_look, false)) co_return;  // only what happens from now on
  // Not one of the newest was known: others before them were missed.
  if (fresh.size() == static_cast<size_t>(kRowsMax))
    append(out, "gap", "", R"({"detail":"more was sent than is shown; see the list of deliveries"})");
  std::vector<Delivery> named(fresh.size());
  for (size_t i = 0; i < fresh.size(); ++i) {
    named[i].endpoint = {rows.get<base::Uuid>(fresh[i], 3)};
    named[i].event = {rows.get<base::Uuid>(fresh[i], 4)};
  }
  const DeliveryNames names = co_await find_names(link, named);
  for (auto row = fresh.rbegin(); row != fresh.rend(); ++row)
    append(out, "attempt", "", attempt_json(rows, *row, names));
}

Task<void> look_at_events(Streaming& stream, pg::Link& link, std::string& out) {
  const base::Uuid recent = id_floor(stream.services.registry.ids.now() - kOverlap);
  const bool is_begin = !stream.after_event;
  const base::Uuid from = is_begin ? recent : std::min(*stream.after_event, recent);
  pg::Params params(*stream.tenant, from, kRowsMax);
  const pg::Rows rows = co_await link.run_one(sql::events_after, std::move(params));
  for (size_t row = 0; row < rows.size(); ++row) {
    const auto id = rows.get<base::Uuid>(row, 0);
    stream.after_event = std::max(stream.after_event.value_or(id), id);
    if (!stream.events.add(id.hex()) || is_begin) continue;
    JsonObject json;
    json.add("id", rows.get<std::string_view>(row, 1))
        .add("type", rows.get<std::string_view>(row, 2))
        .add("tenant_id", *stream.tenant)
        .add("created_at", rows.get<base::Timestamp>(row, 3));
    if (stream.sees_payloads) json.add("body", rows.get<std::string_view>(row, 4));
    append(out, "event", model::EventId{id}.outside(), json.text());
  }
  if (is_begin && !stream.after_event) stream.after_event = recent;
}

Task<void> look(Streaming& stream, std::string& out) {
  const base::SteadyTime deadline = base::BootClock::now() + 5s;
  const pg::Pool::Lease lease = co_await stream.services.pool.acquire(deadline);
  co_await look_at_attempts(stream, *lease, out);
  if (stream.tenant && !stream.endpoint) co_await look_at_events(stream, *lease, out);
}

Task<void> run(std::shared_ptr<Streaming> stream, http::BodyStream& body) {
  const Counted counted(stream->services);
  runtime::Wakeup pause(stream->services.loop);
  base::SteadyTime last_sent = base::BootClock::now();
  std::string out = "retry: 2000\n\n";
  while (!body.is_closing() && base::BootClock::now() < stream->ends_at) {
    try {
      co_await look(*stream, out);
    } catch (const pg::Error& error) {
      append(out, "gap", "", R"({"detail":"the database cannot be reached at the moment"})");
    }
    if (out.empty() && base::BootClock::now() - last_sent > kHeartbeat) out = ": still here\n\n";
    if (!out.empty()) {
      last_sent = base::BootClock::now();
      const bool is_there = co_await body.write(out);
      if (!is_there) co_return;
      out.clear();
    }
    co_await pause.wait_for(kInterval);
  }
}

Task<Response> open(Call& call) {
  Query query(call.request);
  auto stream = std::make_shared<Streaming>(call.services);
  const auto& parameters = call.request.path_parameters;
  if (!parameters.empty()) stream->tenant = call.tenant();
  const auto endpoint = query.value("endpoint");
  std::optional<std::string> after = query.value("after");
  if (const auto last = call.request.header("last-event-id")) after = std::string(*last);
  if (after) {
    const auto id = model::EventId::from_outside(*after);
    if (!stream->tenant) query.refuse("after", "events are streamed below /v1/tenants/{tenant} only");
    if (id)
      stream->after_event = id->uuid;
    else
      query.refuse("after", "must be the id of a streamed event, evt_…");
  }
  FieldProblems problems = query.finish();
  if (!problems.empty()) co_return call.refuse(invalid(std::move(problems)));
  if (call.services.streams >= kStreamsMax) {
    http::Problem busy;
    busy.status = 503;
    busy.type = "too-many-streams";
    busy.detail = "Too many streams are open.";
    busy.retry_after = 5s;
    co_return call.refuse(busy);
  }
  const pg::Pool::Lease lease = co_await call.database();
  if (stream->tenant) {
    const std::optional<registry::Tenant> known = co_await registry::find_tenant(*lease, *stream->tenant);
    if (!known) co_return call.refuse(unknown_tenant());
  }
  if (endpoint) {
    const auto lane = co_await find_lane(*lease, stream->tenant, *endpoint);
    if (!lane) co_return call.refuse(lane.error());
    stream->endpoint = lane->id.uuid;
  }
  stream->sees_payloads = call.principal.sees_payloads;
  stream->ends_at = base::BootClock::now() + kLifetime;
  Response response;
  response.content_type = "text/event-stream";
  response.header("cache-control", "no-store");
  response.stream = [stream](http::BodyStream& body) { return run(stream, body); };
  co_return response;
}

}  // namespace

void add_stream_routes(Routes& routes) {
  routes.add(Method::get, "/v1/stream", Access::read, open);
  routes.add(Method::get, "/v1/tenants/{tenant}/stream", Access::read, open);
}

}  // namespace postrider::api
