// Past hours are computed again from the stored attempts.
#include "postrider/upkeep/upkeep.hpp"
#include "postrider/upkeep/upkeep_testing.hpp"

namespace postrider::upkeep {
namespace {

using Rollups = UpkeepTest;

TEST_F(Rollups, AnHourThatIsOverSaysWhatTheAttemptsSay) {
  const std::string hour = "date_trunc('hour', now() - interval '2 hours')";
  // A node that was killed has counted one of three.
  db.sql("insert into rollup (hour, tenant_id, endpoint_id, event_type, node_id, delivered) values (" + hour +
         ", 'acme', md5('ep')::uuid, '', md5('node')::uuid, 1)");
  db.sql(
      "insert into attempt (delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, outcome, "
      "started_at, "
      "total_us, node_id, created_at, flags) select (left(id_floor(" +
      hour +
      ")::text, 24) || lpad(n::text, 12, '0'))::uuid, case n when 4 then -1 else 1 end, 1, md5('ep')::uuid, "
      "id_floor(" +
      hour + "), 'acme', case when n > 2 then 'retrying' else 'delivered' end, " + hour +
      ", 7, md5('node')::uuid, now(), case n when 2 then 3 else 1 end from generate_series(1, 4) n");
  telemetry::Metrics metrics;
  const auto kept = 24h * 30;
  Upkeep upkeep(loop, link, metrics,
                {.retention = {.events = kept, .attempts = kept, .rollups = kept, .archive_dir = ""}});
  run(upkeep.run_once(base::BootClock::now()));
  EXPECT_EQ(
      db.sql("select sum(delivered), sum(retried), sum(exchanges), sum(latency_us), count(*) from rollup"),
      "2|2|5|28|1")
      << "the second was sent again after a stale connection, the fourth is a failed probe";
  EXPECT_EQ(db.sql("select hour = " + hour + " from rollup_closed"), "t");
}

TEST_F(Rollups, AnHourThatTakesTooLongDoesNotKeepTheNextOpen) {
  db.sql(
      "insert into rollup (hour, tenant_id, endpoint_id, event_type, node_id) select date_trunc('hour', "
      "now()) "
      "- h * interval '1 hour', 'acme', md5('ep')::uuid, '', md5('node')::uuid from generate_series(2, 3) h");
  db.sql(
      "create sequence tried; create function take_long() returns trigger language plpgsql as $$ begin "
      "if new.hour < date_trunc('hour', now()) - interval '2 hours' then perform nextval('tried'); raise "
      "exception 'too long' using errcode = 'query_canceled'; end if; return new; end $$; create trigger "
      "slow "
      "before insert on rollup_closed for each row execute function take_long()");
  telemetry::Metrics metrics;
  const auto kept = 24h * 30;
  Upkeep upkeep(loop, link, metrics,
                {.retention = {.events = kept, .attempts = kept, .rollups = kept, .archive_dir = ""}});
  const auto now = base::BootClock::now();
  for (const auto later : {0min, 2min, 4min}) run(upkeep.run_once(now + later));
  EXPECT_EQ(db.sql("select string_agg((date_trunc('hour', now()) - hour)::text, ',') from rollup_closed"),
            "02:00:00");
  EXPECT_EQ(db.sql("select last_value from tried"), "1") << "it is not tried over and over";
}

}  // namespace
}  // namespace postrider::upkeep
