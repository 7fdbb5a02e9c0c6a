// Shared by the Postgres tests of this folder: a database with tenants and endpoints, rows in its queue, and
// nodes' parts on threads of their own.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "postrider/cluster/cluster_testing.hpp"
#include "postrider/delivery/attempt/metrics.hpp"
#include "postrider/delivery/shard.hpp"
#include "postrider/registry/endpoints.hpp"
#include "postrider/registry/tenants.hpp"
#include "support/database.hpp"
#include "support/receiver.hpp"
#include "support/run.hpp"

namespace postrider::delivery {

using namespace std::chrono_literals;

using cluster::node_number;
using cluster::quoted;

// A loop on its own thread.
class LoopThread {
 public:
  LoopThread() : thread_([this] { loop.run(); }) {}
  ~LoopThread() { stop(); }

  // Runs it there and waits.
  void call(std::function<void()> job) {
    std::promise<void> done;
    loop.post([&] {
      job();
      done.set_value();
    });
    done.get_future().wait();
  }
  void run(std::function<runtime::Task<void>()> make_task) {
    std::promise<void> done;
    loop.post([&] { tasks_.spawn(run_and_tell(make_task, done)); });
    done.get_future().wait();
  }
  void stop() {
    if (!thread_.joinable()) return;
    loop.stop();
    thread_.join();
  }

  runtime::Loop loop;

 private:
  static runtime::Task<void> run_and_tell(std::function<runtime::Task<void>()>& make_task,
                                          std::promise<void>& done) {
    auto task = make_task();
    co_await task;
    done.set_value();
  }
  runtime::TaskGroup tasks_;
  std::thread thread_;
};

struct TestEndpoint {
  model::EndpointId id;
  std::string tenant, public_id;
  int bucket = 0;
  bool is_strict = false;
  int64_t position = 0;  // last one given
};

class DeliveryTest : public testing::Test {
 protected:
  DeliveryTest() : registry_link(loop, {.connect = pg::ConnectOptions::engine(db.url())}) {
    ids.synchronise(9, base::wall_now(), base::BootClock::now());
    registry_link.start();
    run(registry_link.wait_up(base::BootClock::now() + 30s));
  }
  ~DeliveryTest() override { run(registry_link.stop()); }

  template <class T>
  T run(runtime::Task<T> task) {
    return support::run(loop, std::move(task));
  }

  void make_tenant(const std::string& id, registry::TenantSettings settings = {}) {
    ASSERT_TRUE(run(registry::create_tenant(registry_link, context, caller, id, std::move(settings))).ok());
  }

  using Edit = std::function<void(registry::EndpointSettings&)>;
  TestEndpoint make_endpoint(const std::string& tenant, const std::string& url, const Edit& edit = {}) {
    registry::NewEndpoint wanted;
    wanted.tenant = tenant;
    wanted.draft.settings.url = url;
    wanted.draft.patterns = std::vector<std::string>{"*"};
    if (edit) edit(wanted.draft.settings);
    const bool is_strict = wanted.draft.settings.ordering == model::Ordering::strict;
    auto created = run(registry::create_endpoint(registry_link, context, caller, std::move(wanted)));
    EXPECT_TRUE(created.ok());
    const registry::Endpoint& made = created->endpoint;
    return {made.id, tenant, made.public_id, made.bucket, is_strict};
  }
  void set_status(const TestEndpoint& endpoint, model::EndpointStatus status) {
    registry::StatusChange change{status, std::nullopt};
    registry::EndpointRef ref{endpoint.tenant, endpoint.public_id};
    EXPECT_TRUE(run(registry::change_status(registry_link, caller, ref, std::move(change))).ok());
  }

  struct Fields {
    int attempts = 0;
    std::chrono::seconds due_in{0};
    std::chrono::seconds age{0};
    model::NodeId publisher{};  // for the log
  };
  // Commits `bodies` for one endpoint in one transaction, with its line in the publish log.
  std::vector<model::CommittedDelivery> commit(TestEndpoint& endpoint, const std::vector<std::string>& bodies,
                                               const Fields& fields) {
    std::vector<model::CommittedDelivery> made;
    std::string events, rows;
    for (const std::string& body : bodies) {
      auto content = std::make_shared<model::EventContent>();
      content->id = {ids.next()};
      content->public_id = content->id.public_id();
      content->body = body;
      model::CommittedDelivery delivery;
      delivery.id = {
          *base::Uuid::from_hex(model::delivery_head_of(content->id) + model::delivery_tail_of(endpoint.id))};
      delivery.endpoint_id = endpoint.id;
      delivery.tenant_id = endpoint.tenant;
      delivery.bucket = endpoint.bucket;
      delivery.position = endpoint.is_strict ? ++endpoint.position : 0;
      delivery.created_at = ids.now() - fields.age;
      delivery.due_at = ids.now() + fields.due_in;
      delivery.event = content;
      const std::string comma = events.empty() ? "" : ",";
      events += comma + "(" + quoted(content->id.uuid) + ",'" + endpoint.tenant + "','t','" + body + "')";
      rows += comma + "(" + std::to_string(endpoint.bucket) + "," + quoted(delivery.id.uuid) + "," +
              quoted(content->id.uuid) + "," + quoted(endpoint.id.uuid) + ",'" + endpoint.tenant + "'," +
              (fields.attempts > 0 && !endpoint.is_strict ? "true" : "false") + "," +
              std::to_string(delivery.position) + ",'" + base::to_rfc3339(delivery.due_at) + "'," +
              std::to_string(fields.attempts) + ",'" + base::to_rfc3339(delivery.created_at) + "')";
      made.push_back(std::move(delivery));
    }
    db.sql("begin; insert into event (id, tenant_id, type, body) values " + events +
           "; insert into queue (bucket, id, event_id, endpoint_id, tenant_id, retry, position, due_at, "
           "attempts, created_at) values " +
           rows + "; insert into publish_log (node_id, first_id, last_id, buckets) values (" +
           quoted(fields.publisher.uuid) + "," + quoted(made.front().id.uuid) + "," +
           quoted(made.back().id.uuid) + ", array[" + std::to_string(endpoint.bucket) + "]); commit");
    return made;
  }
  std::vector<model::CommittedDelivery> commit(TestEndpoint& endpoint,
                                               const std::vector<std::string>& bodies) {
    return commit(endpoint, bodies, Fields());
  }

  static std::vector<std::string> numbered(int count, const std::string& prefix = "") {
    std::vector<std::string> bodies;
    for (int i = 0; i < count; ++i) bodies.push_back(prefix + std::to_string(i));
    return bodies;
  }

  std::string live_rows() { return db.sql("select count(*) from queue where bucket >= 0"); }
  void wait_until_drained() { db.wait_for("select count(*) from queue where bucket >= 0", "0"); }

  support::Database db;
  runtime::Loop loop;
  pg::Link registry_link;
  model::IdSource ids;
  crypto::MasterKeys keys = *crypto::MasterKeys::parse(crypto::MasterKeys::generate());
  registry::Context context{keys, ids, support::buckets};
  registry::Caller caller = registry::Caller::system();
  support::Receiver receiver;
};

// One shard that serves all buckets, as a node would run it.
class TestShard {
 public:
  TestShard(support::Database& database, const model::IdSource& ids, const crypto::MasterKeys& keys,
            ShardOptions options = {})
      : db_(database), guard_(policy()), tls_({.trust_system_store = false}) {
    if (options.node_id.uuid.is_nil()) options.node_id = node_number(1);
    node_ = options.node_id;
    options.buckets_total = support::buckets;
    renew();
    on_.call([&] {
      link_ = std::make_unique<pg::Link>(
          on_.loop, pg::LinkOptions{.connect = pg::ConnectOptions::engine(database.url()),
                                    .pause_min = pg::Milliseconds(10)});
      client_ = std::make_unique<http::Client>(on_.loop, guard_, tls_, http::ClientOptions());
      shard_ =
          std::make_unique<Shard>(ShardTools{on_.loop, *link_, *client_, lease, ids, keys, metrics}, options);
      link_->start();
    });
  }
  ~TestShard() { stop(); }

  void stop() {
    if (!shard_) return;
    on_.run([this] { return shard_->stop(); });
    on_.call([this] {
      shard_.reset();
      client_.reset();
      link_.reset();
    });
    on_.stop();
  }

  // Commits the leases of all buckets, then serves them.
  void take_all() {
    db_.sql("update bucket_lease set owner = " + quoted(node_.uuid) + ", epoch = epoch + 1");
    const auto epoch = std::stoll(db_.sql("select max(epoch) from bucket_lease"));
    on_.call([this, epoch] {
      for (int bucket = 0; bucket < support::buckets; ++bucket) shard_->take_bucket(bucket, epoch);
    });
  }
  // For an hour, and confirmed however often the machine makes the test wait.
  void renew() { lease.renew({.sent_at = base::SteadyTime::max(), .until = base::BootClock::now() + 1h}); }
  void let_lease_run_out() {
    lease.renew({.sent_at = base::SteadyTime::max(), .until = base::BootClock::now()});
  }
  void drop_all() {
    on_.call([this] {
      for (int bucket = 0; bucket < support::buckets; ++bucket) shard_->drop_bucket(bucket);
    });
  }
  void offer(std::vector<model::CommittedDelivery> deliveries) {
    on_.loop.post([this, rows = std::move(deliveries)]() mutable { shard_->offer(std::move(rows)); });
  }
  void discover(const std::vector<model::CommittedDelivery>& deliveries) {
    on_.call([&] {
      shard_->discover({{deliveries.front().bucket}, deliveries.front().id, deliveries.back().id});
    });
  }
  void refresh(const TestEndpoint& endpoint) {
    on_.call([&] { shard_->refresh_endpoint(endpoint.id); });
  }
  void call(std::function<void(Shard&)> job) {
    on_.call([&] { job(*shard_); });
  }
  // Runs it there, behind what is queued already, and does not wait.
  void post(std::function<void(Shard&)> job) {
    on_.loop.post([this, job = std::move(job)] { job(*shard_); });
  }
  // Its result, when there is one; while it runs the shard may be used.
  std::future<bool> drain_bucket(int bucket, std::chrono::milliseconds patience) {
    auto result = std::make_shared<std::promise<bool>>();
    on_.loop.post([this, bucket, patience, result] {
      drains_.spawn(drain_and_tell(shard_->drain_bucket(bucket, patience), result));
    });
    return result->get_future();
  }
  // Drains the shard and calls `then` on its loop at once.
  std::future<bool> drain(std::chrono::seconds patience, std::function<void()> then) {
    auto result = std::make_shared<std::promise<bool>>();
    on_.loop.post([this, patience, result, then = std::move(then)] {
      const auto deadline = base::BootClock::now() + patience;
      drains_.spawn(drain_all_and_tell(shard_->drain(deadline), then, result));
    });
    return result->get_future();
  }
  model::NodeId node() const { return node_; }

  cluster::LeaseClock lease;
  telemetry::Metrics all;
  Metrics metrics{all};

 private:
  static http::GuardPolicy policy() {
    return {.allow_http = true, .allow_networks = {*http::Network::parse("127.0.0.0/8")}};
  }

  static runtime::Task<void> drain_and_tell(runtime::Task<bool> drain,
                                            std::shared_ptr<std::promise<bool>> result) {
    const bool is_drained = co_await drain;
    result->set_value(is_drained);
  }

  static runtime::Task<void> drain_all_and_tell(runtime::Task<void> drain, std::function<void()> then,
                                                std::shared_ptr<std::promise<bool>> result) {
    co_await drain;
    then();
    result->set_value(true);
  }

  support::Database& db_;
  model::NodeId node_;
  http::AddressGuard guard_;
  http::TlsContext tls_;
  LoopThread on_;
  std::unique_ptr<pg::Link> link_;
  std::unique_ptr<http::Client> client_;
  std::unique_ptr<Shard> shard_;
  runtime::TaskGroup drains_;
};

}  // namespace postrider::delivery
