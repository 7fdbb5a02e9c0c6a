// GET /v1/stream and /v1/tenants/{tenant}/stream: server-sent events, for `tail`, `listen` and live views.
//
//   event: attempt    an exchange, of whichever node
//   event: event      a published event (of one tenant only)
//   event: ready      everything up to now was sent; the following is new
//   event: gap        there was more than is shown
//
// The id of a message is what `after` and Last-Event-ID take: after a break nothing is left out, and what may
// be a repeat is recognised by its ID. The database is asked twice a second, for a limited number of rows,
// so that a stream costs the same whatever happens; a reader that takes nothing for the server's write
// timeout is cut off.
#include <memory>
#include <utility>

#include "postrider/api/resources/delivery_filter.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/page.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/history/deliveries.sql.hpp"
#include "postrider/history/stream_events.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/registry/tenants.hpp"

namespace postrider::api {

namespace {

using namespace std::chrono_literals;

constexpr auto kInterval = 500ms;
constexpr auto kHeartbeat = 15s;
constexpr auto kLifetime = 1h;    // then the client comes again, with a key that is still good
constexpr auto kSettleMax = 5s;   // between the end of an attempt and its row, usually
constexpr auto kLookBack = 120s;  // attempts of deliveries made so long ago; later retries are not shown
constexpr int kRowsMax = 500;     // per look
constexpr size_t kShownMax = 20'000;

struct Streaming {
  explicit Streaming(const Call& of)
      : call(of), services(of.services), place(services.streams.take(holder_of(of.principal))) {}

  Call call;
  Services& services;
  Shares::Place place;
  std::optional<model::TenantId> tenant;
  std::optional<base::Uuid> endpoint;
  std::optional<history::EventFollower> events;  // none: not asked for
  bool has_attempts = true;
  std::optional<base::Timestamp> attempts_since;  // catch up from here; none: from now on
  base::SteadyTime ends_at{};
  history::Shown<std::string> attempts{kShownMax};
  bool is_first_look = true;
  bool is_ready = false;
};

using AttemptRow = history::sql::HistoryRow;

Task<pg::RowList<AttemptRow>> newest_attempts(const Streaming& stream, pg::Link& link, base::Timestamp now) {
  base::Uuid before;
  before.bytes.fill(0xFF);
  const base::Uuid from = model::id_floor(now - kLookBack);
  pg::RowList<AttemptRow> rows;
  if (stream.endpoint)
    rows = co_await link.run(history::sql::history_of_endpoint{
        .before = before, .from = from, .endpoint = *stream.endpoint, .rows = kRowsMax});
  else if (stream.tenant)
    rows = co_await link.run(history::sql::history_of_tenant{
        .before = before, .from = from, .tenant = *stream.tenant, .rows = kRowsMax});
  else
    rows = co_await link.run(history::sql::history_of_all{.before = before, .from = from, .rows = kRowsMax});
  co_return rows;
}

std::string attempt_json(const AttemptRow& row, const history::DeliveryNames& names) {
  const model::EndpointId endpoint{row.endpoint_id};
  const model::EventId event{row.event_id};
  const auto find_endpoint = names.endpoints.find(endpoint);
  const auto known_event = names.events.find(event);
  JsonObject json;
  json.add("delivery_id", model::DeliveryId{row.delivery_id}.public_id())
      .add("attempt", row.probed_attempt.value_or(row.attempt))
      .add("outcome", row.outcome)
      .add("tenant_id", row.tenant_id)
      .add("endpoint_id",
           find_endpoint == names.endpoints.end() ? endpoint.public_id() : find_endpoint->second.public_id)
      .add("event_id", known_event == names.events.end() ? event.public_id() : known_event->second.public_id);
  if (known_event != names.events.end()) json.add("event_type", known_event->second.type);
  json.add("status_code", row.status_code)
      .add("error", row.error)
      .add("started_at", row.started_at)
      .add("latency_ms", row.total_us / 1'000.0)
      .add("next_attempt_at", row.next_attempt_at);
  return json.text();
}

constexpr std::string_view kMoreSent =
    R"({"detail":"some attempts are not shown here; see the list of deliveries"})";
constexpr std::string_view kNoDatabase = R"({"detail":"the database is unavailable"})";

constexpr std::string_view kTooBusy =
    R"({"detail":"too many requests of this tenant or key are in progress"})";

// Up to where the stream has come. What ended before `at` and is settled later is not shown after a break.
history::StreamCursor cursor_of(const Streaming& stream) {
  history::StreamCursor cursor;
  if (stream.events) {
    cursor.event = stream.events->head();
    cursor.since = stream.events->since();
  }
  if (stream.has_attempts) cursor.at = stream.services.registry.ids.now() - kSettleMax;
  return cursor;
}

// The first read only returns rows after the cursor: the others are older.
bool is_wanted(const Streaming& stream, const AttemptRow& row) {
  if (!stream.is_first_look) return true;
  const auto ended_at = row.started_at + base::Microseconds(row.total_us);
  return stream.attempts_since && ended_at >= *stream.attempts_since;
}

// The oldest of the new ones first.
Task<void> look_at_attempts(Streaming& stream, pg::Link& link, std::string& out) {
  const base::Timestamp now = stream.services.registry.ids.now();
  const pg::RowList<AttemptRow> rows = co_await newest_attempts(stream, link, now);
  std::vector<AttemptRow> fresh;
  runtime::Pause pause(stream.services.loop);
  for (const auto& row : rows) {
    const std::string key = row.delivery_id.hex() + std::to_string(row.attempt);
    if (stream.attempts.add(key) && is_wanted(stream, row)) fresh.push_back(row);
    co_await pause;
  }
  // Not one of the newest was known: others before them were missed. Or the break was longer than is looked
  // back.
  const bool is_too_old =
      stream.is_first_look && stream.attempts_since && *stream.attempts_since < now - kLookBack;
  if (fresh.size() == static_cast<size_t>(kRowsMax) || is_too_old)
    history::append_message(out, "gap", "", kMoreSent);
  stream.is_first_look = false;
  std::vector<history::Delivery> named(fresh.size());
  for (size_t i = 0; i < fresh.size(); ++i) {
    named[i].endpoint = {fresh[i].endpoint_id};
    named[i].event = {fresh[i].event_id};
  }
  const history::DeliveryNames names = co_await history::find_names(link, named);
  const std::string cursor = cursor_of(stream).text();
  for (auto row = fresh.rbegin(); row != fresh.rend(); ++row) {
    history::append_message(out, "attempt", cursor, attempt_json(*row, names));
    co_await pause;
  }
}

// True: there is more at once.
Task<bool> look(Streaming& stream, std::string& out) {
  bool has_more = false;
  if (stream.events) {
    const base::Timestamp now = stream.services.registry.ids.now();
    const history::EventFollower::Sink sink{stream.services.loop, out, stream.call.principal.sees_payloads};
    const pg::Pool::Handle lease = co_await stream.call.database();
    has_more = co_await stream.events->look(*lease, now, sink);
  }
  if (stream.has_attempts) {
    const pg::Pool::Handle lease = co_await stream.call.database();
    co_await look_at_attempts(stream, *lease, out);
  }
  if (!has_more && !std::exchange(stream.is_ready, true)) {
    JsonObject ready;
    ready.add("caught_up_events", stream.events ? stream.events->count() : 0);
    history::append_message(out, "ready", cursor_of(stream).text(), ready.text());
  }
  co_return has_more;
}

Task<void> run(std::shared_ptr<Streaming> stream, http::BodyStream& body) {
  runtime::Wakeup pause(stream->services.loop);
  base::SteadyTime last_sent = base::BootClock::now();
  std::string out = "retry: 2000\n\n";
  while (!body.is_closing() && base::BootClock::now() < stream->ends_at) {
    bool has_more = false;
    try {
      has_more = co_await look(*stream, out);
    } catch (const pg::Error&) {
      history::append_message(out, "gap", "", kNoDatabase);
    } catch (const CallRejected& rejected) {
      if (rejected.problem().status == 401) co_return;
      history::append_message(out, "gap", "", kTooBusy);
    }
    if (out.empty() && base::BootClock::now() - last_sent > kHeartbeat) out = ": heartbeat\n\n";
    if (!out.empty()) {
      last_sent = base::BootClock::now();
      const bool is_there = co_await body.write(out);
      if (!is_there) co_return;
      out.clear();
    }
    if (!has_more) co_await pause.wait_for(kInterval);
  }
}

// The kinds of messages to stream, and the starting point. The stream of all tenants has no events.
void read_cursor(const Call& call, Query& query, Streaming& stream) {
  std::optional<std::string> after = query.value("after");
  if (const auto last = call.request.header("last-event-id")) after = std::string(*last);
  const std::optional<std::string> only = query.value("only");
  if (only && *only != "events" && *only != "attempts") query.reject("only", "must be events or attempts");
  if (only == "events" && !stream.tenant)
    query.reject("only", "events are streamed below /v1/tenants/{tenant} only");
  stream.has_attempts = only != "events";
  std::optional<history::StreamCursor> cursor =
      after ? history::StreamCursor::parse(*after) : history::StreamCursor{};
  if (!cursor) {
    query.reject("after", "must be the id of a streamed message, or @ and a time as in RFC 3339");
    cursor.emplace();
  }
  stream.attempts_since = cursor->at;
  if (!stream.tenant || only == "attempts") return;
  const bool is_time_only = !cursor->event && !cursor->since;
  const auto since = is_time_only ? cursor->at : cursor->since;
  stream.events.emplace(*stream.tenant, history::EventFollower::Start{cursor->event, since});
}

Task<Response> open(Call& call) {
  Query query(call.request);
  const Shares& streams = call.services.streams;
  const Shares::Room room = streams.room_for(holder_of(call.principal));
  if (room != Shares::Room::free) co_return call.reject(no_room(streams, room, call.principal, "streams"));
  auto stream = std::make_shared<Streaming>(call);
  const auto& parameters = call.request.path_parameters;
  if (!parameters.empty()) stream->tenant = call.tenant();
  const auto endpoint = query.value("endpoint");
  read_cursor(call, query, *stream);
  FieldProblems problems = query.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const pg::Pool::Handle lease = co_await call.database();
  if (stream->tenant) {
    const std::optional<registry::Tenant> known = co_await registry::find_tenant(*lease, *stream->tenant);
    if (!known) co_return call.reject(unknown("tenant"));
  }
  if (endpoint) {
    const auto lane = co_await find_lane(*lease, stream->tenant, *endpoint);
    if (!lane) co_return call.reject(lane.error());
    stream->endpoint = lane->id.uuid;
    stream->events.reset();
  }
  stream->ends_at = base::BootClock::now() + kLifetime;
  Response response;
  response.content_type = "text/event-stream";
  response.header("cache-control", "no-store");
  response.header("x-accel-buffering", "no");  // nginx would collect events until its buffer is full
  response.stream = [stream](http::BodyStream& body) {
    return run_while_allowed(stream->call, run(stream, body), body);
  };
  co_return response;
}

}  // namespace

void add_stream_routes(Routes& routes) {
  routes.add(Method::get, "/v1/stream", Access::read, open);
  routes.add(Method::get, "/v1/tenants/{tenant}/stream", Access::read, open);
}

}  // namespace postrider::api
