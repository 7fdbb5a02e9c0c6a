#include "postrider/server/relay_thread.hpp"

#include <utility>

#include "postrider/outbox/capture.hpp"
#include "postrider/outbox/publisher_sink.hpp"
#include "postrider/outbox/relay.hpp"
#include "postrider/outbox/same_database.hpp"
#include "postrider/outbox/supervisor.hpp"
#include "postrider/outbox/validator.hpp"
#include "postrider/runtime/loop_thread.hpp"

namespace postrider::server {

namespace {

using outbox::kLocal;

publish::EventWriterOptions writer_options(const RelayTools& tools) {
  publish::EventWriterOptions options;
  options.node_id = tools.engine.id();
  options.create_tenants = tools.config.create_tenants;
  options.data_bytes_max = static_cast<int>(tools.config.payload_bytes_max);
  options.wide_endpoints = tools.config.wide_fanout_endpoints;
  return options;
}

publish::PublisherOptions publisher_options(const RelayTools& tools) {
  publish::PublisherOptions options;
  options.node_id = tools.engine.id();
  options.create_tenants = tools.config.create_tenants;
  options.data_bytes_max = static_cast<int>(tools.config.payload_bytes_max);
  options.wide_endpoints = tools.config.wide_fanout_endpoints;
  return options;
}

outbox::DrainLimits drain_limits(const config::Config& config, outbox::Validator& validator,
                                 const pg::SessionLease* lease = nullptr) {
  outbox::DrainLimits limits;
  limits.validator = &validator;
  limits.lease = lease;
  limits.rows_max = config.publish_batch_items_max;
  limits.bytes_max = config.publish_batch_bytes_max;
  limits.retain = config.retain_outbox;
  limits.archive_dir = config.archive_dir;
  return limits;
}

outbox::RelayOptions relay_options(const RelayTools& tools) {
  outbox::RelayOptions options;
  options.name = kLocal;
  options.owner = tools.engine.id().public_id();
  options.poll = tools.config.relay_poll;
  options.lease = std::chrono::seconds(tools.config.lease_seconds);
  options.may_be_notified = tools.config.relay_notify;
  options.data_bytes_max = static_cast<int>(tools.config.payload_bytes_max);
  options.listen = outbox::listen_link(tools.direct_database_url);
  return options;
}

std::vector<outbox::ConfiguredOutbox> configured(const config::Config& config) {
  std::vector<outbox::ConfiguredOutbox> outboxes;
  for (const auto& each : config.outboxes)
    outboxes.push_back({each.name, each.database_url, each.poll, each.retain});
  return outboxes;
}

}  // namespace

struct RelayThread::State {
  explicit State(RelayTools relay_tools)
      : tools(std::move(relay_tools)),
        link(loop, outbox::relay_link(tools.direct_database_url)),
        lease(link, outbox::relay_lease(relay_options(tools))),
        publish_link(others_loop, outbox::relay_link(tools.direct_database_url)),
        validator(link, tools.metrics, !tools.config.allow_unknown_event_types),
        others_validator(publish_link, tools.metrics, !tools.config.allow_unknown_event_types),
        writer(link, tools.ids, tools.engine, tools.metrics, writer_options(tools)),
        drainer(loop, link, writer, outbox::OutboxMetrics(tools.metrics, kLocal),
                drain_limits(tools.config, validator, &lease)),
        relay(loop, link, lease, drainer, outbox::OutboxMetrics(tools.metrics, kLocal), relay_options(tools)),
        capture_writer(link, tools.ids, tools.engine, tools.metrics, writer_options(tools)),
        capture_publisher(loop, link, capture_writer, outbox::OutboxMetrics(tools.metrics, kLocal),
                          drain_limits(tools.config, validator, &lease)),
        capture(
            {loop, link, link, lease, capture_publisher, outbox::CaptureMetrics(tools.metrics, kLocal)},
            outbox::capture_options(kLocal, tools.direct_database_url, drain_limits(tools.config, validator)),
            [this] { return relay.is_active(); }),
        publisher(others_loop, publish_link, tools.ids, tools.engine, tools.metrics,
                  publisher_options(tools)),
        sink(publisher),
        keeper({others_loop, publish_link, sink, tools.keys, tools.metrics, configured(tools.config)},
               relay_options(tools), drain_limits(tools.config, others_validator)) {
    publisher.on_committed([this](const std::vector<int>&) { tools.engine.committed(); });
    publisher.on_wide([this] { tools.fanout.notify(); });
    for (auto* each : {&writer, &capture_writer}) {
      each->on_committed([this](const std::vector<int>&) { tools.engine.committed(); });
      each->on_wide([this] { tools.fanout.notify(); });
    }
  }

  runtime::Task<void> drain() {
    co_await capture.stop();
    co_await relay.stop();
    co_await writer.stop();
    co_await capture_writer.stop();
    co_await link.stop();
  }

  runtime::Task<void> drain_others() {
    co_await keeper.stop();
    co_await publisher.stop();
    co_await publish_link.stop();
  }

  RelayTools tools;
  // Two threads: connecting resolves the host name in the thread, and a slow name must not hold up
  // postrider's own outbox.
  runtime::LoopThread own, others;
  runtime::Loop &loop = own.loop, &others_loop = others.loop;
  pg::Link link;
  pg::SessionLease lease;
  pg::Link publish_link;
  outbox::Validator validator, others_validator;
  publish::EventWriter writer;
  outbox::SameDatabaseDrainer drainer;
  outbox::Relay relay;
  publish::EventWriter capture_writer;
  outbox::SameDatabaseCapturePublisher capture_publisher;
  outbox::Capture capture;
  // For outboxes in other databases.
  publish::Publisher publisher;
  outbox::PublisherSink sink;
  outbox::RelaySupervisor keeper;
};

RelayThread::RelayThread(RelayTools tools) : state_(std::make_unique<State>(std::move(tools))) {}
RelayThread::~RelayThread() = default;

void RelayThread::start() {
  State& state = *state_;
  state.loop.post([&state] {
    state.link.start();
    state.relay.start();
    state.capture.start();
  });
  state.others_loop.post([&state] {
    state.publish_link.start();
    state.keeper.start();
  });
  state.own.start();
  state.others.start();
}

void RelayThread::apply(const registry::Change& change) {
  State& state = *state_;
  state.loop.post([&state, change] { state.validator.apply(change); });
  state.others_loop.post([&state, change] { state.others_validator.apply(change); });
}

void RelayThread::stop() {
  State& state = *state_;
  state.others.run([&state] { return state.drain_others(); });
  state.others.stop();
  state.own.run([&state] { return state.drain(); });
  state.own.stop();
}

}  // namespace postrider::server
