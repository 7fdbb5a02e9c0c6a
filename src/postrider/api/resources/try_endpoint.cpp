// POST /v1/tenants/{tenant}/endpoints/{endpoint}/test: sends a sample now and returns the exchange.
//
// The sample goes through the same client, guard, signature and headers as a delivery, also when the endpoint
// is paused or disabled, and counts for nothing: no attempt, no health, no breaker. Asked to, one that was
// delivered resumes an endpoint that postrider itself had paused or disabled.
#include <algorithm>
#include <boost/json/serialize.hpp>
#include <utility>

#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/header_rules.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/delivery/attempt/attempt.hpp"
#include "postrider/model/event_type.hpp"
#include "postrider/publish/envelope.hpp"
#include "postrider/registry/audience.hpp"
#include "postrider/registry/endpoint_config.hpp"
#include "postrider/registry/endpoints.hpp"

namespace postrider::api {

namespace {

constexpr auto kPatienceMax = std::chrono::seconds(30);
constexpr std::string_view kTestType = "test", kDefaultType = "webhook.test";
constexpr std::string_view kDefaultData = R"({"message":"This is a test."})";
constexpr size_t kDataMax = 64 << 10;

struct Sample {
  std::string type;
  std::optional<std::string> version;
  std::optional<std::string> data;
  bool resumes = false;
};

Sample read_sample(const boost::json::object& document, FieldProblems& problems) {
  Sample sample;
  Fields fields(document, "", problems);
  fields.read("event_type", sample.type, {.bytes_max = model::kEventTypeMax});
  if (!sample.type.empty() && !model::is_event_type(sample.type))
    fields.reject("event_type", "must be an event type like invoice.paid");
  fields.read("version", sample.version, {.bytes_max = publish::kVersionBytesMax});
  if (const auto* data = fields.take("data")) {
    sample.data = boost::json::serialize(*data);
    if (sample.data->size() > kDataMax)
      fields.reject("data", "must not be longer than " + std::to_string(kDataMax) + " bytes");
  }
  fields.read("resume", sample.resumes);
  fields.finish();
  return sample;
}

// A type that the endpoint is subscribed to: one with an example in the catalogue, if there is one.
std::string type_for(const registry::Endpoint& endpoint, const registry::Catalogue& catalogue) {
  for (const std::string& pattern : endpoint.patterns)
    if (auto type = catalogue.type_with_example(pattern)) return *type;
  for (const std::string& pattern : endpoint.patterns)
    if (model::is_event_type(pattern)) return pattern;
  for (const std::string& pattern : endpoint.patterns)
    if (pattern.size() > 1 && pattern.size() < model::kEventTypeMax - kTestType.size())
      return pattern.substr(0, pattern.size() - 1) + std::string(kTestType);  // `invoice.*`: invoice.test
  return std::string(kDefaultType);
}

delivery::QueueRow make_row(const Call& call, const registry::Endpoint& endpoint, const Sample& sample) {
  model::IdSource& ids = call.services.registry.ids;
  publish::NewEvent event;
  event.tenant_id = endpoint.tenant_id;
  event.type = sample.type;
  event.version = sample.version;
  event.data = sample.data ? std::string_view(*sample.data) : kDefaultData;
  auto content = std::make_shared<model::EventContent>();
  content->id = model::EventId{ids.next()};
  content->public_id = content->id.public_id();
  content->body = publish::envelope(event, content->public_id, base::to_rfc3339(ids.now()));
  delivery::QueueRow row;
  row.key.id = model::DeliveryId{ids.next()};
  row.event_id = content->id;
  row.created_at = ids.now();
  row.event = std::move(content);
  return row;
}

// Custom headers are secret; postrider's own header lines are not.
std::string headers_json(std::string_view lines, size_t custom_bytes) {
  JsonObject json;
  const size_t custom_from = lines.size() - custom_bytes;
  for (size_t at = 0; at < lines.size();) {
    const size_t end = lines.find("\r\n", at);
    const std::string_view line = lines.substr(at, end - at);
    const size_t colon = line.find(": ");
    json.add(line.substr(0, colon), at >= custom_from ? masked_value : line.substr(colon + 2));
    at = end + 2;
  }
  return json.text();
}

// The response of an endpoint counts as a payload.
std::string response_json(const http::ReceivedResponse& response, const delivery::AttemptFacts& facts,
                          bool sees_payloads) {
  const std::optional<std::string> hidden;
  JsonObject json;
  json.add("status", response.status)
      .add("content_type", response.content_type)
      .add("preview", sees_payloads ? facts.preview : hidden)
      .add("complete", response.is_complete);
  return json.text();
}

std::string phases_json(const delivery::AttemptFacts& facts) {
  JsonObject json;
  json.add("lookup_us", facts.lookup_us)
      .add("connect_us", facts.connect_us)
      .add("tls_us", facts.tls_us)
      .add("first_byte_us", facts.first_byte_us)
      .add("total_us", facts.total_us);
  return json.text();
}

struct Try {
  const registry::Endpoint& endpoint;
  const delivery::LaneConfig& config;
  const delivery::QueueRow& row;
  std::string headers;
  const registry::Principal& reader;
};

bool is_delivered(const http::Exchange& exchange) {
  const http::ReceivedResponse* response = exchange.answer();
  return response != nullptr && response->status >= 200 && response->status <= 299;
}

// The effect of the test on an endpoint that is not active.
struct Aftermath {
  model::EndpointStatus status;
  std::optional<std::string_view> resume;
};

std::string try_json(const Try& made, const http::Exchange& exchange, base::Timestamp started_at,
                     const Aftermath& after) {
  const delivery::AttemptFacts facts = delivery::attempt_facts(exchange, started_at);
  const http::ReceivedResponse* response = exchange.answer();
  const http::Audience audience = registry::audience_of(made.reader);
  JsonObject request;
  request.add("method", "POST")
      .add("url", made.endpoint.settings.url)
      .raw("headers", headers_json(made.headers, made.config.endpoint.header_lines.size()))
      .add("body", made.row.event->body);
  JsonObject json;
  json.add("delivered", is_delivered(exchange))
      .add("endpoint_id", made.endpoint.public_id)
      .add("sent_at", started_at)
      .raw("request", request.text())
      .raw("response", response ? response_json(*response, facts, made.reader.sees_payloads) : "null")
      .add("error", facts.error)
      .add("error_detail", registry::shown_error(audience, facts.error, facts.error_detail))
      .add("address", registry::shown_to_operators(audience, facts.address))
      .raw("phases", phases_json(facts))
      .add("endpoint_status", model::label(after.status))
      .add("resume", after.resume);
  return json.text();
}

http::Problem cannot_sign(const std::string& why) {
  return problem(409, "cannot-sign",
                 "The secrets of this endpoint cannot be read on this node, so the test cannot be signed" +
                     (why.empty() ? "." : ": " + why + "."));
}

http::Problem cannot_send(const std::string& why) {
  return problem(409, "cannot-send", "The request cannot be built: " + why + ".");
}

struct Loaded {
  std::shared_ptr<const registry::Catalogue> catalogue;
  registry::Endpoint endpoint;
  std::shared_ptr<const delivery::LaneConfig> config;
};

// The connection is returned to the pool before anything is sent.
Task<base::Result<Loaded, registry::Rejection>> load(const Call& call) {
  registry::EndpointRef of{call.tenant(), call.parameter("endpoint")};
  const pg::Pool::Handle lease = co_await call.database();
  registry::EndpointResult found = co_await registry::find_endpoint(*lease, std::move(of));
  if (!found) co_return base::Failure{found.error()};
  const std::vector<model::EndpointId> ids{found->id};
  auto configs = co_await registry::load_endpoint_configs(*lease, ids, call.services.registry.keys);
  if (configs.empty())
    co_return base::Failure{registry::Rejection{registry::RejectionKind::unknown_endpoint}};
  if (call.services.catalogue.find() == nullptr) co_await call.services.catalogue.load(*lease);
  auto profile = registry::profile_of(*call.services.client, configs.front());
  auto config =
      delivery::make_lane_config(std::move(configs.front()), call.services.secrets, std::move(profile));
  Loaded loaded{call.services.catalogue.last(), std::move(*found), std::move(config)};
  co_return loaded;
}

// Resumes only an endpoint that postrider stopped, and only if it was not changed during the test.
Task<Aftermath> settle_status(const Call& call, const registry::Endpoint& endpoint, bool resumes) {
  Aftermath after{endpoint.status, std::nullopt};
  if (endpoint.status == model::EndpointStatus::active) co_return after;
  const bool is_automatic = endpoint.status_by == model::Actor::postrider;
  after.resume = is_automatic ? "offered" : "by_hand";
  if (!resumes || !is_automatic) co_return after;
  const pg::Pool::Handle lease = co_await call.database();
  registry::EndpointRef of{call.tenant(), call.parameter("endpoint")};
  registry::StatusChange wanted{model::EndpointStatus::active, "a test was delivered", endpoint.revision};
  const registry::Caller caller = call.caller();
  const registry::EndpointResult changed =
      co_await registry::change_status(*lease, caller, std::move(of), std::move(wanted));
  if (!changed) co_return after;
  after.status = changed->status;
  if (changed->status == model::EndpointStatus::active) after.resume = "resumed";
  co_return after;
}

Task<Response> try_endpoint(Call& call) {
  const auto document = parse_body(call.request, Body::may_be_empty);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  Sample sample = read_sample(*document, problems);
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  Shares& tests = call.services.tests;
  const std::string holder = holder_of(call.principal);
  const Shares::Room room = tests.room_for(holder);
  if (room != Shares::Room::free) co_return call.reject(no_room(tests, room, call.principal, "tests"));
  const Shares::Place place = tests.take(holder);

  const auto loaded = co_await load(call);
  if (!loaded) co_return call.reject(problem_of(loaded.error()));
  const delivery::LaneConfig& config = *loaded->config;
  if (config.signer.keys.empty()) {
    const std::string why = call.principal.is_bound() ? "" : config.why_unsigned;
    co_return call.reject(cannot_sign(why));
  }
  if (sample.type.empty()) sample.type = type_for(loaded->endpoint, *loaded->catalogue);
  if (!sample.data) sample.data = loaded->catalogue->example(sample.type, sample.version);
  const delivery::QueueRow row = make_row(call, loaded->endpoint, sample);
  const base::Timestamp started_at = call.services.registry.ids.now();
  auto headers = delivery::attempt_headers(config, row, started_at, call.services.config.user_agent);
  if (!headers) co_return call.reject(cannot_send(headers.error()));
  Try made{loaded->endpoint, config, row, std::move(*headers), call.principal};
  http::Exchange exchange;
  if (config.url) {
    const auto patience = std::min<std::chrono::milliseconds>(
        std::chrono::milliseconds(config.endpoint.timeout_ms), kPatienceMax);
    const http::OutboundRequest request{
        .url = *config.url,
        .headers = made.headers,
        .body = row.event->body,
        .profile = config.profile.get(),
        .deadline = base::BootClock::now() + patience,
        .response_body_bytes_max = static_cast<size_t>(call.services.config.response_bytes_max)};
    exchange = co_await call.services.client->send(request);
  } else {
    exchange.outcome =
        http::NetFailure{http::NetError::blocked, std::string(http::describe(http::NetError::blocked)), {}};
  }
  const bool is_allowed = co_await is_still_allowed(call);
  if (!is_allowed) throw CallRejected(unauthorized(NotAuthenticated::key_invalid));
  Aftermath after{loaded->endpoint.status, std::nullopt};
  if (is_delivered(exchange)) {
    auto settled = settle_status(call, loaded->endpoint, sample.resumes);
    after = co_await settled;
  }
  co_return Response::json(200, try_json(made, exchange, started_at, after));
}

}  // namespace

void add_try_endpoint_routes(Routes& routes) {
  if (routes.services().client == nullptr) return;
  routes.add(Method::post, "/v1/tenants/{tenant}/endpoints/{endpoint}/test", Access::customer, try_endpoint);
}

}  // namespace postrider::api
