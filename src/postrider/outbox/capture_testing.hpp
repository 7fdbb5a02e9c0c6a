// For tests of change data capture: a database that captures, and nodes that read it.
#pragma once

#include "postrider/outbox/capture.hpp"
#include "postrider/outbox/capture_plan.hpp"
#include "postrider/outbox/relay.hpp"
#include "postrider/outbox/same_database.hpp"
#include "postrider/outbox/slot_reader.hpp"
#include "postrider/publish/publish_testing.hpp"
#include "support/cluster.hpp"

namespace postrider::outbox {

using namespace std::chrono_literals;

inline const bool kIsLogical = support::Cluster::want_logical();

// Relay and capture of one node.
class TestNode {
 public:
  TestNode(runtime::Loop& loop, const std::string& url, model::IdSource& ids, DrainLimits limits)
      : link(loop, {.connect = pg::ConnectOptions::engine(url), .pause_min = pg::Milliseconds(10)}),
        lease(link, relay_lease(relay_options(url))),
        writer(link, ids, handoff, metrics, {}),
        drainer(loop, link, writer, OutboxMetrics(metrics, "local"), fenced(limits)),
        relay(loop, link, lease, drainer, OutboxMetrics(metrics, "local"), relay_options(url)),
        capture_writer(link, ids, handoff, metrics, {.node_id = publish::some_node()}),
        capture_publisher(loop, link, capture_writer, OutboxMetrics(metrics, "local"), fenced(limits)),
        capture({loop, link, link, lease, capture_publisher, CaptureMetrics(metrics, "local")},
                options(url, limits), [this] { return relay.is_active(); }) {
    link.start();
  }
  DrainLimits fenced(DrainLimits limits) const {
    limits.lease = &lease;
    return limits;
  }
  static RelayOptions relay_options(const std::string& url) {
    RelayOptions options;
    options.owner = "test";
    options.poll = 20ms;
    options.may_be_notified = false;
    options.listen.connect.url = url;
    return options;
  }
  static CaptureOptions options(const std::string& url, const DrainLimits& limits) {
    CaptureOptions options = capture_options("local", url, limits);
    options.look = 50ms;
    options.rest = 1h;
    options.mark = 1h;  // tests write it themselves
    return options;
  }
  void start() {
    relay.start();
    capture.start();
  }
  runtime::Task<void> stop() {
    auto captured = capture.stop();
    co_await captured;
    auto stopped = relay.stop();
    co_await stopped;
    co_await writer.stop();
    co_await capture_writer.stop();
    auto closed = link.stop();
    co_await closed;
  }

  telemetry::Metrics metrics;
  publish::KeptHandoff handoff;
  pg::Link link;
  pg::SessionLease lease;
  publish::EventWriter writer;
  SameDatabaseDrainer drainer;
  Relay relay;
  publish::EventWriter capture_writer;
  SameDatabaseCapturePublisher capture_publisher;
  Capture capture;
};

class CaptureTest : public publish::PublishTest {
 protected:
  CaptureTest() {
    support::SyncSql(db.superuser_url())("alter role postrider replication");
    make_tenant("acme");
    make_endpoint("acme");
    db.sql("select outbox_set_mode('cdc')");
  }
  ~CaptureTest() override { stop_all(); }
  void stop_all() {
    for (auto& each : nodes) run(each->stop());
    nodes.clear();
    db.wait_for("select count(*) from pg_replication_slots where active and database = current_database()",
                "0");
  }

  TestNode& node() {
    DrainLimits limits;
    limits.rows_max = 10;
    limits.retry_seconds = {0};
    nodes.push_back(std::make_unique<TestNode>(loop, db.url(), ids, limits));
    run(nodes.back()->link.wait_up(base::BootClock::now() + 30s));
    return *nodes.back();
  }
  TestNode& capturing() {
    TestNode& on = node();
    on.start();
    until("select state from outbox_slot", "on");
    return on;
  }
  void until(const std::string& sql, const std::string& wanted) {
    run(publish::until(loop, db, sql, wanted));
  }
  void until_published(int events) { until("select count(*) from event", std::to_string(events)); }
  std::string metric(const TestNode& of, const std::string& name) {
    const std::string text = of.metrics.text();
    const std::string line = "\n" + name + "{outbox=\"local\"} ";
    const size_t at = text.find(line);
    return at == std::string::npos
               ? ""
               : text.substr(at + line.size(), text.find('\n', at + 1) - at - line.size());
  }

  std::vector<std::unique_ptr<TestNode>> nodes;
};

}  // namespace postrider::outbox
