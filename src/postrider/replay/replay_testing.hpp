// Shared by the Postgres tests of this folder: a tenant with endpoints and events whose deliveries have
// ended in some way.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "postrider/model/id_source.hpp"
#include "postrider/replay/request.hpp"
#include "postrider/replay/runner.hpp"
#include "support/database.hpp"
#include "support/run.hpp"

namespace postrider::replay {

using namespace std::chrono_literals;

class ReplayTest : public testing::Test {
 protected:
  ReplayTest() : link(loop, link_options()) {
    ids.synchronise(7, base::wall_now(), base::BootClock::now());
    link.start();
    run(link.wait_up(base::BootClock::now() + 30s));
    db.sql("insert into tenant (id) values ('acme'), ('other')");
  }
  ~ReplayTest() override { run(link.stop()); }

  pg::LinkOptions link_options() {
    pg::LinkOptions options;
    options.connect.url = db.url();
    options.connect.plan_cache_mode = "force_custom_plan";
    return options;
  }

  template <class T>
  T run(runtime::Task<T> task) {
    return support::run(loop, std::move(task));
  }

  static std::string quoted(const base::Uuid& id) { return "'" + id.text() + "'"; }

  struct EndpointFields {
    std::string patterns = "{*}";
    std::string ordering = "none";
    std::string tenant = "acme";
  };
  model::EndpointId make_endpoint() { return make_endpoint(EndpointFields()); }
  model::EndpointId make_endpoint(const EndpointFields& fields) {
    const model::EndpointId id{ids.next()};
    db.sql("insert into endpoint (id, public_id, tenant_id, bucket, delivery_tail, url, ordering) values (" +
           quoted(id.uuid) + ", '" + id.public_id() + "', '" + fields.tenant + "', " +
           std::to_string(model::bucket_of(id, support::buckets)) + ", '" + model::delivery_tail_of(id) +
           "', 'http://127.0.0.1/', '" + fields.ordering +
           "'); insert into subscription (tenant_id, pattern, endpoint_id) select '" + fields.tenant +
           "', p, " + quoted(id.uuid) + " from unnest('" + fields.patterns + "'::text[]) p");
    return id;
  }

  model::EventId make_event(const std::string& type = "invoice.paid", const std::string& tenant = "acme") {
    const model::EventId id{ids.next()};
    db.sql("insert into event (id, tenant_id, type, body) values (" + quoted(id.uuid) + ", '" + tenant +
           "', '" + type + "', '{}')");
    return id;
  }

  static model::DeliveryId delivery_of(model::EventId event, model::EndpointId endpoint) {
    return {*base::Uuid::from_hex(model::delivery_head_of(event) + model::delivery_tail_of(endpoint))};
  }

  // The history of one delivery that ended like this.
  model::DeliveryId ended(model::EventId event, model::EndpointId endpoint, const std::string& outcome) {
    const model::DeliveryId id = delivery_of(event, endpoint);
    const std::string columns = quoted(id.uuid) + ", " +
                                std::to_string(model::bucket_of(endpoint, support::buckets)) + ", " +
                                quoted(endpoint.uuid) + ", " + quoted(event.uuid) + ", 'acme', ";
    db.sql(
        "insert into attempt (delivery_id, bucket, endpoint_id, event_id, tenant_id, attempt, outcome, "
        "started_at, total_us, node_id, created_at) values (" +
        columns + "1, '" + outcome + "', now(), 1, gen_random_uuid(), now())");
    if (outcome == "dead_letter")
      db.sql(
          "insert into dead_letter (delivery_id, bucket, endpoint_id, event_id, tenant_id, cause, attempts, "
          "created_at) values (" +
          columns + "'exhausted', 8, now())");
    return id;
  }

  static registry::Caller caller(std::string id = "key_1") {
    return {.kind = registry::ActorKind::key, .id = std::move(id)};
  }
  Single replay(model::DeliveryId delivery, const std::string& tenant = "acme") {
    const registry::Caller who = caller();
    return run(replay_delivery(link, who, {.tenant = tenant, .delivery = delivery, .reason = "lost"}));
  }

  Range last_hour(Scope scope) {
    return {.tenant = "acme", .scope = scope, .since = ids.now() - 1h, .until = ids.now() + 1s};
  }
  model::ReplayId ask(Range range, double rate = 1'000) {
    const registry::Caller who = caller();
    return run(
        request_range(link, who, {.range = std::move(range), .rate_per_second = rate, .reason = "lost"}));
  }
  int64_t count(Range range) {
    MatchCount counted(std::move(range));
    while (!counted.is_complete()) run(counted.look(link));
    return counted.matched();
  }
  Replay find(model::ReplayId id) { return *run(find_replay(link, "acme", id)); }

  std::string queued(const std::string& what = "count(*)") {
    return db.sql("select " + what + " from queue where bucket >= 0");
  }

  support::Database db;
  runtime::Loop loop;
  pg::Link link;
  model::IdSource ids;
};

}  // namespace postrider::replay
