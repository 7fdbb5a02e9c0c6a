// Lists find their rows through an index, with a plan made for the given values. Without the index a page of
// a history of ten million attempts takes seconds. Arguments are in the order of the parameters in the SQL.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "postrider/history/deliveries.sql.hpp"
#include "postrider/history/delivery.sql.hpp"
#include "postrider/history/events.sql.hpp"
#include "support/database.hpp"

namespace postrider::history {
namespace {

using testing::HasSubstr;
using testing::Not;

struct ListPlanTest : testing::Test {
  ListPlanTest() : session(db.url()) {
    session("set plan_cache_mode = force_custom_plan; set jit = off");
    // Ten tenants with ten endpoints each; the last tenth of the day's attempts was not delivered.
    db.sql(
        "insert into tenant (id) select 't' || n from generate_series(0, 9) n;"
        "insert into endpoint (id, public_id, tenant_id, bucket, delivery_tail, url) select md5('ep' || "
        "n)::uuid, 'ep_' || md5('ep' || n), 't' || n % 10, n % 16, left(md5('ep' || n), 12), "
        "'https://x.test' "
        "from generate_series(0, 99) n;"
        "create temp table made as select n, (lpad(to_hex((extract(epoch from now()) * 1000)::bigint + n), "
        "12, "
        "'0') || '70000000')::text as head, md5('ep' || n % 100)::uuid as endpoint_id, 't' || n % 10 as "
        "tenant_id, n % 16 as bucket from generate_series(1, 20000) n;"
        "insert into event (id, tenant_id, type, subject, body) select (head || '000000000000')::uuid, "
        "tenant_id, 'a.b', case when n % 50 = 0 then 's' || n end, '{}' from made;"
        "insert into attempt (delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, outcome, "
        "started_at, total_us, node_id, created_at) select (head || left(md5('ep' || n % 100), 12))::uuid, "
        "1, "
        "bucket, endpoint_id, (head || '000000000000')::uuid, tenant_id, case when n % 201 = 0 then "
        "'canceled' "
        "when n % 21 = 1 then 'dead_letter' else 'delivered' end, now(), 1, md5('n')::uuid, now() from made;"
        "insert into dead_letter (delivery_id, bucket, endpoint_id, event_id, tenant_id, cause, attempts, "
        "created_at) select delivery_id, bucket, endpoint_id, event_id, tenant_id, 'rejected', 1, now() from "
        "attempt where outcome = 'dead_letter';"
        "insert into queue (bucket, id, event_id, endpoint_id, tenant_id, due_at, created_at) select bucket, "
        "(head || left(md5('ep' || n % 100), 12))::uuid, (head || '000000000000')::uuid, endpoint_id, "
        "tenant_id, now(), now() from made where n > 15000;"
        "analyze");
  }

  std::string plan(pg::Statement statement, const std::string& arguments) {
    session("prepare list as " + std::string(statement.text));
    const std::string found = session("explain (costs off) execute list(" + arguments + ")");
    session("deallocate list");
    return found;
  }
  void expect(pg::Statement statement, const std::string& arguments, const std::string& index) {
    SCOPED_TRACE(statement.name);
    const std::string found = plan(statement, arguments);
    EXPECT_THAT(found, HasSubstr(index)) << found;
    // Other days are empty, and an empty table is read as it is.
    const std::string today = db.sql("select to_char(now() at time zone 'UTC', 'YYYYMMDD')");
    EXPECT_THAT(found, Not(HasSubstr("Seq Scan on queue"))) << found;
    for (const std::string table : {"attempt_", "event_", "dead_letter_"})
      EXPECT_THAT(found, Not(HasSubstr("Seq Scan on " + table + today))) << found;
  }

  support::Database db;
  support::SyncSql session;
  const std::string range = "'ffffffff-ffff-ffff-ffff-ffffffffffff', '00000000-0000-0000-0000-000000000000'";
  const std::string endpoint = "md5('ep7')::uuid";
};

TEST_F(ListPlanTest, HistoryOfATenantOrEndpoint) {
  expect(sql::history_of_tenant::statement, range + ", 't7', 51", "tenant_id_delivery_id_idx");
  expect(sql::history_of_endpoint::statement, range + ", " + endpoint + ", 51",
         "endpoint_id_delivery_id_idx");
  expect(sql::history_of_all::statement, range + ", 51", "_pkey");
}

TEST_F(ListPlanTest, WhatDidNotArrive) {
  expect(sql::canceled_of_all::statement, range + ", 51", "delivery_id_idx");
  expect(sql::canceled_of_tenant::statement, range + ", 't0', 51", "delivery_id_idx");
  expect(sql::failed_of_tenant::statement, range + ", 't0', 'retrying', 51",
         "tenant_id_outcome_delivery_id_idx");
  expect(sql::dead_letter_ids_of_tenant::statement, range + ", 't1', 51", "tenant_id_delivery_id_idx");
  expect(sql::dead_letter_ids_of_endpoint::statement, range + ", " + endpoint + ", 51",
         "endpoint_id_delivery_id_idx");
}

TEST_F(ListPlanTest, ByEventAndSubject) {
  const std::string event =
      "array[md5('e')::uuid], array['ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid], "
      "array[id_floor(now())], array[id_floor(now() + interval '1 second')], 51";
  expect(sql::history_of_events::statement, event, "event_id_delivery_id_idx");
  expect(sql::queued_of_events::statement, event, "queue_replayed");
  expect(sql::queued_of_events::statement, event, "queue_pkey");
  expect(sql::events_of_subject::statement, "'s50', 'ffffffff-ffff-ffff-ffff-ffffffffffff', 't0', 20",
         "subject_tenant_id_id_idx");
  expect(sql::list_events_of_subject::statement,
         "'t0', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '00000000-0000-0000-0000-000000000000', 's50', 20",
         "subject_tenant_id_id_idx");
}

TEST_F(ListPlanTest, WhatIsInTheQueue) {
  expect(sql::queued_of_range::statement, "300, array[1, 2, 3], " + range + ", 't1', null", "queue_pkey");
  expect(sql::queued_in_order::statement,
         "array[7, 8], array[" + endpoint + ", " + endpoint +
             "], array[false, false], array[0, 0], array[now(), now()], array[" + endpoint + ", " + endpoint +
             "], true, 51",
         "queue_lane");
  expect(sql::queued_in_flight::statement, "51, " + range + ", null::text, null::uuid", "queue_pkey");
  expect(sql::queued_of_lanes::statement, "array[7, 8], array[" + endpoint + ", " + endpoint + "], 51",
         "queue_lane");
  expect(sql::queued_everywhere::statement, "0, " + endpoint + ", false, 0, now(), " + endpoint + ", 51",
         "queue_lane");
  expect(sql::queued_delivery::statement, endpoint, "queue_pkey");
}

}  // namespace
}  // namespace postrider::history
