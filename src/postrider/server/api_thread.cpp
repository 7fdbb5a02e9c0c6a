#include "postrider/server/api_thread.hpp"

#include <utility>

#include "postrider/api/wire/metrics.hpp"
#include "postrider/delivery/engine_options.hpp"
#include "postrider/http/server/cors.hpp"
#include "postrider/inbox/receiver.hpp"
#include "postrider/inbox/waiters.hpp"
#include "postrider/runtime/loop_thread.hpp"

namespace postrider::server {

namespace {

constexpr size_t kPoolLinks = 3;  // a tenant uses one at most, an unbound key two

pg::LinkOptions publish_link(const ApiTools& tools) {
  pg::LinkOptions options;
  options.connect = pg::ConnectOptions::engine(tools.database_url);
  options.connect.application_name = "postrider publish";
  // If the database hangs, publishers get a response within seconds; a batch that takes this long is
  // repeated.
  options.connect.statement_timeout = pg::Milliseconds(5'000);
  options.connect.response_timeout = pg::Milliseconds(8'000);
  return delivery::pooled(std::move(options), tools.config);
}

pg::LinkOptions query_links(const ApiTools& tools) {
  pg::LinkOptions options;
  options.connect.url = tools.database_url;
  options.connect.application_name = "postrider api";
  options.connect.statement_timeout = pg::Milliseconds(10'000);  // final: the caller is asked to ask for less
  options.connect.plan_cache_mode = "force_custom_plan";  // lists: rare values differ from tenant to tenant
  return delivery::pooled(std::move(options), tools.config);
}

// Keys, sources and the catalogue. Every call waits for these, so a statement that hangs is canceled soon.
pg::LinkOptions lookup_link(const ApiTools& tools) {
  pg::LinkOptions options = publish_link(tools);
  options.connect.application_name = "postrider lookups";
  options.connect.lock_timeout = pg::Milliseconds(1'000);
  return options;
}

publish::PublisherOptions publisher_options(const ApiTools& tools) {
  const config::Config& config = tools.config;
  publish::PublisherOptions options;
  options.node_id = tools.engine.id();
  options.create_tenants = config.create_tenants;
  options.data_bytes_max = static_cast<int>(config.payload_bytes_max);
  options.wide_endpoints = config.wide_fanout_endpoints;
  options.rates = &tools.rates;
  options.limits.items_max = static_cast<size_t>(config.publish_batch_items_max);
  options.limits.rows_max = static_cast<size_t>(config.publish_batch_rows_max);
  options.limits.bytes_max = static_cast<size_t>(config.publish_batch_bytes_max);
  options.limits.waiting_items_max = static_cast<size_t>(config.publish_queue_items_max);
  return options;
}

// For names that are looked up when a URL is saved, and for test sends; both are rare.
http::ClientOptions client_options(const config::Config& config) {
  http::ClientOptions options;
  options.idle_total_max = 16;
  if (!config.bind_address.empty()) options.bind_address = http::IpAddress::parse(config.bind_address);
  return options;
}

inbox::ReceiverOptions receiver_options(const ApiTools& tools) {
  inbox::ReceiverOptions options;
  options.buckets = tools.config.buckets;
  options.limits = publisher_options(tools).limits;
  return options;
}

http::ServerOptions server_options(const config::Config& config) {
  http::ServerOptions options;
  options.body_bytes_max = static_cast<size_t>(config.api_body_bytes_max);
  options.head_bytes_max = static_cast<size_t>(config.request_head_bytes_max);
  options.fields_max = static_cast<size_t>(config.request_fields_max);
  options.target_bytes_max = static_cast<size_t>(config.request_target_bytes_max);
  options.head_timeout = config.request_timeout;
  options.body_timeout = config.request_timeout;
  options.idle_timeout = config.idle_timeout;
  options.trusted_proxies = config.trusted_proxies;
  return options;
}

}  // namespace

struct ApiThread::State {
  explicit State(ApiTools api_tools)
      : tools(std::move(api_tools)),
        link(loop, publish_link(tools)),
        pool(loop, query_links(tools), kPoolLinks),
        lookups(loop, lookup_link(tools)),
        client(loop, tools.guard, tools.tls, client_options(tools.config)),
        publisher(loop, link, tools.ids, tools.engine, tools.metrics, publisher_options(tools)),
        receiver(loop, link, tools.ids, tools.metrics, receiver_options(tools)),
        waiters(loop),
        api({.loop = loop,
             .pool = pool,
             .lookups = lookups,
             .registry = {tools.keys, tools.ids, tools.config.buckets, tools.config.endpoints_max,
                          &tools.secrets.policy()},
             .config = tools.config,
             .guard = tools.guard,
             .metrics = tools.metrics,
             .resolver = &client.resolver(),
             .client = &client,
             .secrets = &tools.secrets,
             .publisher = tools.config.roles.api ? &publisher : nullptr,
             .receiver = tools.config.roles.inbox ? &receiver : nullptr,
             .rejections = &tools.rejections,
             .waiters = &waiters,
             .worker = &tools.worker,
             .publish_rates = &tools.rates,
             .key_rates = &tools.key_rates,
             .sign_in_guard = &tools.sign_in_guard,
             .readiness_note =
                 [this] {
                   const std::string database = tools.database.note(), recipients = tools.recipients.text();
                   return database + (database.empty() || recipients.empty() ? "" : "\n") + recipients;
                 },
             .take_effect =
                 [this](registry::ChangedEndpoints changed) {
                   return tools.engine.take_effect(std::move(changed), loop);
                 }}),
        cors(api.router(), tools.config.cors_origins),
        server(loop, tools.listener, cors, api::server_metrics(tools.metrics), server_options(tools.config)) {
    publisher.on_committed([this](const std::vector<int>&) { tools.engine.committed(); });
    publisher.on_wide([this] { tools.fanout.notify(); });
    receiver.on_stored([this](std::vector<inbox::SourceId> sources) {
      tools.inbox_maintenance.wake_consumers(std::move(sources));
    });
  }

  runtime::Task<void> drain(base::SteadyTime deadline) {
    server.stop_accepting();
    waiters.stop();
    client.close();  // a test request in progress ends now
    co_await server.drain(deadline);
    co_await publisher.stop();
    co_await receiver.stop();
    co_await pool.stop();
    co_await lookups.stop();
    co_await link.stop();
  }

  ApiTools tools;
  runtime::LoopThread on;
  runtime::Loop& loop = on.loop;
  pg::Link link;
  pg::Pool pool;
  pg::Link lookups;
  http::Client client;
  publish::Publisher publisher;
  inbox::Receiver receiver;
  inbox::Waiters waiters;
  api::Api api;
  http::Cors cors;
  http::Server server;
};

ApiThread::ApiThread(ApiTools tools) : state_(std::make_unique<State>(std::move(tools))) {}
ApiThread::~ApiThread() = default;

void ApiThread::start() {
  State& state = *state_;
  state.loop.post([&state] {
    state.link.start();
    state.pool.start();
    state.lookups.start();
    state.server.start();
  });
  state.on.start();
}

void ApiThread::apply(const registry::Change& change) {
  State& state = *state_;
  state.loop.post([&state, change] { state.api.apply({&change, 1}); });
}

void ApiThread::post(std::function<void()> job) {
  state_->loop.post(std::move(job));
}

void ApiThread::wake_consumers(std::string source) {
  State& state = *state_;
  state.loop.post([&state, woken = std::move(source)] { state.waiters.wake(woken); });
}

void ApiThread::stop(base::SteadyTime deadline) {
  State& state = *state_;
  state.on.run([&state, deadline] { return state.drain(deadline); });
  state.on.stop();
}

}  // namespace postrider::server
