// Shared by the Postgres tests of this folder: a database, tenants and endpoints in it, publishers on it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "postrider/publish/fanout.hpp"
#include "postrider/publish/publisher.hpp"
#include "support/database.hpp"
#include "support/run.hpp"

namespace postrider::publish {

// Keeps what it is offered. One thread.
class KeptHandoff : public model::Handoff {
 public:
  void offer(std::vector<model::CommittedDelivery> offered) override {
    for (auto& delivery : offered) {
      EXPECT_TRUE(seen_.insert(delivery.id).second) << "passed on twice: " << delivery.id.public_id();
      deliveries.push_back(std::move(delivery));
    }
  }
  std::vector<model::CommittedDelivery> deliveries;

 private:
  std::set<model::DeliveryId> seen_;
};

// Not nil: what this node commits is announced by it.
inline model::NodeId some_node() {
  model::NodeId node;
  node.uuid.bytes[0] = 1;
  return node;
}

// A publisher with its link, as on one API loop.
class TestPublisher {
 public:
  TestPublisher(runtime::Loop& loop, const std::string& url, model::IdSource& ids,
                PublisherOptions options = {})
      : link(loop, {.connect = connect_options(url), .pause_min = pg::Milliseconds(10)}),
        publisher(loop, link, ids, handoff, metrics, with_node(options)) {
    link.start();
  }
  runtime::Task<void> stop() {
    auto stopped = publisher.stop();
    co_await stopped;
    auto closed = link.stop();
    co_await closed;
  }

  telemetry::Metrics metrics;
  KeptHandoff handoff;
  pg::Link link;
  Publisher publisher;

 private:
  // What ends the wait for a server that hangs is the deadline of the publisher.
  static pg::ConnectOptions connect_options(const std::string& url) {
    auto options = pg::ConnectOptions::engine(url);
    options.response_timeout = pg::Milliseconds(0);
    return options;
  }
  static PublisherOptions with_node(PublisherOptions options) {
    options.node_id = some_node();
    return options;
  }
};

// Until the query returns `wanted`, while the loop goes on.
inline runtime::Task<void> until(runtime::Loop& loop, support::Database& db, std::string sql,
                                 std::string wanted) {
  runtime::Wakeup turn(loop);
  while (db.sql(sql) != wanted) co_await turn.wait_for(std::chrono::milliseconds(1));
}

// Until a backend waits for a lock on the table; that is where it is then.
inline std::string waiting_for(const std::string& table) {
  return "select count(*) from pg_locks where not granted and relation = '" + table + "'::regclass";
}

// A deferred trigger runs inside COMMIT, so a lock there stops a transaction exactly between its last
// statement and its end. Not one that only makes the owners look.
inline constexpr const char* kSlowCommit =
    "create table gate (); "
    "create function wait_at_gate() returns trigger language plpgsql as $$ begin lock table gate in share "
    "mode; "
    "return null; end $$; "
    "create constraint trigger at_commit after insert on publish_log deferrable initially deferred for each "
    "row when (new.node_id <> '00000000-0000-0000-0000-000000000000') "
    "execute function wait_at_gate()";

inline const std::string kNotices = "publish_log l where l.node_id = '00000000-0000-0000-0000-000000000000'";
// How many deliveries the owners were notified of, and can find.
inline const std::string kNoticed =
    "select count(*) from queue q where q.bucket >= 0 and exists (select from " + kNotices +
    " and q.id between l.first_id and l.last_id and q.bucket = any (l.buckets))";

class PublishTest : public testing::Test {
 protected:
  PublishTest() { ids.synchronise(7, now(), base::BootClock::now()); }
  ~PublishTest() override {
    for (auto& publisher : publishers) run(publisher->stop());
  }

  static base::Timestamp now() { return base::wall_now(); }

  template <class T>
  T run(runtime::Task<T> task) {
    return support::run(loop, std::move(task));
  }

  TestPublisher& publisher(PublisherOptions options = {}) {
    publishers.push_back(std::make_unique<TestPublisher>(loop, db.url(), ids, options));
    run(publishers.back()->link.wait_up(base::BootClock::now() + std::chrono::seconds(30)));
    return *publishers.back();
  }

  void make_tenant(const std::string& tenant) { db.sql("insert into tenant (id) values ('" + tenant + "')"); }

  struct EndpointFields {
    std::string patterns = "{*}";
    std::string status = "active";
    std::string ordering = "none";
    std::string versions = "null";
  };
  model::EndpointId make_endpoint(const std::string& tenant) {
    return make_endpoint(tenant, EndpointFields());
  }
  model::EndpointId make_endpoint(const std::string& tenant, const EndpointFields& fields) {
    const model::EndpointId id{ids.next()};
    const std::string uuid = "'" + id.uuid.text() + "'";
    db.sql(
        "insert into endpoint (id, public_id, tenant_id, bucket, delivery_tail, url, status, ordering) "
        "values (" +
        uuid + ", '" + id.public_id() + "', '" + tenant + "', " +
        std::to_string(model::bucket_of(id, support::buckets)) + ", '" + model::delivery_tail_of(id) +
        "', 'http://127.0.0.1/', '" + fields.status + "', '" + fields.ordering +
        "');"
        "insert into subscription (tenant_id, pattern, endpoint_id, versions) select '" +
        tenant + "', p, " + uuid + ", " + fields.versions + " from unnest('" + fields.patterns +
        "'::text[]) p;"
        "update tenant set endpoint_count = endpoint_count + 1, strict_count = strict_count + " +
        (fields.ordering == "strict" ? "1" : "0") + " where id = '" + tenant + "'");
    return id;
  }

  static NewEvent event(std::string tenant, std::string type = "invoice.paid") {
    NewEvent event;
    event.tenant_id = std::move(tenant);
    event.type = std::move(type);
    event.data = R"({"amount":12})";
    return event;
  }

  PublishResult publish(TestPublisher& on, NewEvent event) {
    return run(on.publisher.publish(std::move(event)));
  }
  std::vector<PublishResult> publish_all(TestPublisher& on, std::vector<NewEvent> events) {
    return run(on.publisher.publish_all(std::move(events)));
  }

  std::string live_rows(const std::string& what = "count(*)") {
    return db.sql("select " + what + " from queue where bucket >= 0");
  }

  support::Database db;
  runtime::Loop loop;
  model::IdSource ids;
  std::vector<std::unique_ptr<TestPublisher>> publishers;
};

inline bool is_new(const PublishResult& answer) {
  const auto* published = std::get_if<Published>(&answer);
  return published != nullptr && !published->is_repeat;
}
inline bool is_repeat(const PublishResult& answer) {
  const auto* published = std::get_if<Published>(&answer);
  return published != nullptr && published->is_repeat;
}
inline bool is_rejected(const PublishResult& answer, Rejected::Reason reason) {
  const auto* rejected = std::get_if<Rejected>(&answer);
  return rejected != nullptr && rejected->reason == reason;
}
inline std::string text_of(const PublishResult& answer) {
  if (const auto* published = std::get_if<Published>(&answer)) return published->response;
  return "rejected: " + std::get<Rejected>(answer).detail;
}

}  // namespace postrider::publish
