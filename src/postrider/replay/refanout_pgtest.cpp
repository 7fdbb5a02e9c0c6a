#include "postrider/replay/refanout.hpp"

#include "postrider/replay/replay_testing.hpp"

namespace postrider::replay {
namespace {

class RefanoutTest : public ReplayTest {
 protected:
  RefanoutRange hour() { return {.since = ids.now() - 1h, .until = ids.now() + 1s}; }
  Standing go(RefanoutOptions options = {}) { return go(hour(), options); }
  Standing go(const RefanoutRange& range, RefanoutOptions options = {}) {
    options.rate_per_second = 1e6;
    Refanout refanout(loop, link, range, options);
    EXPECT_TRUE(run(refanout.begin()));
    return run(refanout.from_events());
  }
  void lose_queue() { db.sql("truncate queue"); }
};

TEST_F(RefanoutTest, MakesEveryDeliveryThatIsMissingUnderItsOwnId) {
  const auto one = make_endpoint();
  make_endpoint({.patterns = "{order.*}"});
  const auto event = make_event("invoice.paid");
  make_event("order.sent");
  lose_queue();
  const Standing done = go();
  EXPECT_EQ(done.scanned, 2);
  EXPECT_EQ(done.queued, 3);
  EXPECT_EQ(queued("count(*)"), "3");
  EXPECT_EQ(
      db.sql("select count(*) from queue where bucket >= 0 and id = " + quoted(delivery_of(event, one).uuid)),
      "1");
  EXPECT_EQ(db.sql("select count(*) from queue where bucket = -1"), "5000") << "a truncated queue lacks them";
  EXPECT_EQ(db.sql("select count(distinct b) from publish_log, unnest(buckets) b"),
            queued("count(distinct bucket)"));
}

TEST_F(RefanoutTest, MakesNoSecondDeliveryOfWhatIsPendingOrHasEnded) {
  const auto one = make_endpoint();
  ended(make_event(), one, "delivered");
  ended(make_event(), one, "canceled");
  ended(make_event(), one, "dead_letter");
  make_event();
  EXPECT_EQ(go().queued, 1);
  EXPECT_EQ(go().queued, 0);
  EXPECT_EQ(go().scanned, 4) << "it looks again";
}

TEST_F(RefanoutTest, SendsAgainWhatOnlyALostHistoryKnew) {
  const auto one = make_endpoint();
  ended(make_event(), one, "delivered");
  db.sql("truncate attempt");
  EXPECT_EQ(go().queued, 1);
}

TEST_F(RefanoutTest, LeavesOutEventsWhoseHistoryRetentionHasRemoved) {
  const auto one = make_endpoint();
  ended(make_event(), one, "delivered");
  db.sql(
      "truncate attempt; update kept_since set since = now() + interval '1 minute' where name = 'attempts'");
  const Standing done = go();
  EXPECT_EQ(done.queued, 0) << "it may have been delivered";
  EXPECT_TRUE(done.unknown_before);
  const Standing all = go({.is_without_history = true});
  EXPECT_EQ(all.queued, 1);
  EXPECT_FALSE(all.unknown_before);
}

TEST_F(RefanoutTest, GoesOnWithTheNextAttemptOfWhatWasBeingRetried) {
  const auto one = make_endpoint();
  ended(make_event(), one, "retrying");
  EXPECT_EQ(go().queued, 1);
  EXPECT_EQ(queued("attempts, retry, due_at <= now()"), "1|t|t");
}

TEST_F(RefanoutTest, MakesALostReplayOfADeadLetterAgain) {
  const auto one = make_endpoint();
  const auto dead = ended(make_event(), one, "dead_letter");
  ASSERT_EQ(replay(dead).outcome, Single::Result::made);
  EXPECT_EQ(go().queued, 0) << "the replay is pending";
  lose_queue();
  EXPECT_EQ(go().queued, 1);
  EXPECT_EQ(go().queued, 0);
  EXPECT_EQ(db.sql("select count(*) from queue where id = " + quoted(dead.uuid)), "0")
      << "a dead letter stays what it is";
}

TEST_F(RefanoutTest, LeavesOutErasedEventsEndpointsMadeLaterAndThoseThatAreOff) {
  const auto off = make_endpoint(), later = make_endpoint();
  db.sql("update endpoint set status = 'disabled' where id = " + quoted(off.uuid));
  db.sql("update endpoint set created_at = now() + interval '1 hour' where id = " + quoted(later.uuid));
  make_event();
  EXPECT_EQ(go().queued, 0);
  make_endpoint();
  db.sql("update event set erased_at = now(), body = ''");
  EXPECT_EQ(go().queued, 0);
}

TEST_F(RefanoutTest, IsOneTenantsAndADryRunWritesNothing) {
  make_endpoint();
  make_endpoint({.tenant = "other"});
  make_event();
  make_event("invoice.paid", "other");
  RefanoutRange range = hour();
  range.tenant = "other";
  EXPECT_EQ(go(range, {.is_dry = true}).queued, 1);
  EXPECT_EQ(queued(), "0");
  EXPECT_EQ(db.sql("select count(*) from refanout"), "0");
  EXPECT_EQ(go(range).queued, 1);
  EXPECT_EQ(queued("tenant_id"), "other");
}

TEST_F(RefanoutTest, NeedsManyStepsForManyEndpointsAndCountsEachEventOnce) {
  for (int i = 0; i < 7; ++i) make_endpoint();
  for (int i = 0; i < 9; ++i) make_event();
  const Standing done = go({.step_events_max = 4, .step_deliveries_max = 3});
  EXPECT_EQ(done.queued, 63);
  EXPECT_EQ(done.scanned, 9);
}

TEST_F(RefanoutTest, GoesOnWhereItWasKilled) {
  make_endpoint();
  for (int i = 0; i < 10; ++i) make_event();
  const RefanoutRange range = hour();
  {
    // The second step never comes back: its connection is ended.
    Refanout killed(loop, link, range, {.rate_per_second = 1e6, .step_events_max = 4});
    ASSERT_TRUE(run(killed.begin()));
    killed.on_progress([this](const Standing& standing) {
      if (standing.queued == 4)
        db.sql("select pg_terminate_backend(backend_pid) from session_lease where name = 'refanout'");
    });
    EXPECT_THROW(run(killed.from_events()), pg::Error);
  }
  run(link.wait_up(base::BootClock::now() + 30s));
  EXPECT_EQ(queued(), "4");
  RefanoutRange open = range;
  open.until = {};
  EXPECT_EQ(run(unfinished_until(link, open)), range.until);
  const Standing done = go(range);
  EXPECT_TRUE(done.is_resumed);
  EXPECT_EQ(done.scanned, 10);
  EXPECT_EQ(done.queued, 10);
  EXPECT_EQ(queued(), "10");
  EXPECT_EQ(run(unfinished_until(link, open)), std::nullopt);
}

TEST_F(RefanoutTest, KeepsTheOrderOfAStrictEndpoint) {
  make_endpoint({.ordering = "strict"});
  for (int i = 0; i < 9; ++i) make_event();
  go({.step_events_max = 4});
  EXPECT_EQ(queued("string_agg(position::text, ',' order by event_id)"), "1,2,3,4,5,6,7,8,9");
}

TEST_F(RefanoutTest, BringsArchivedEventsBackAndSendsThem) {
  make_endpoint();
  db.sql("update endpoint set created_at = '2011-01-01'");
  db.sql("select create_partition('event', date '2012-05-05')");
  db.sql(
      "insert into event (id, tenant_id, type, body) select id_floor('2012-05-05 12:00Z'::timestamptz + n * "
      "interval '1 s'), 'acme', 'a.b', '{\"text\":\"\\u0000 ä\"}' from generate_series(1, 10) n");
  std::vector<std::string> lines;
  for (int n = 0; n < 10; ++n)
    lines.push_back(
        db.sql("select row_to_json(e) from event e order by id limit 1 offset " + std::to_string(n)));
  db.sql("drop table event_20120505");
  const RefanoutRange range{.since = {}, .until = ids.now()};
  const auto read = [&](RefanoutOptions options) {
    options.rate_per_second = 1e6;
    options.step_events_max = 4;
    Refanout refanout(loop, link, range, options);
    EXPECT_TRUE(run(refanout.begin()));
    size_t at = 0;
    return run(refanout.from_archive("/event_20120505.ndjson.gz", [&lines, at](std::string& line) mutable {
      if (at == lines.size()) return false;
      line = lines[at++];
      return true;
    }));
  };
  EXPECT_EQ(read({.is_dry = true}).queued, 10);
  EXPECT_EQ(db.sql("select count(*) from event"), "0");
  const Standing done = read({});
  EXPECT_EQ(done.scanned, 10);
  EXPECT_EQ(done.queued, 10);
  EXPECT_EQ(queued("count(*), count(distinct event_id)"), "10|10");
  EXPECT_EQ(db.sql("select distinct body from event"), "{\"text\":\"\\u0000 ä\"}");
  EXPECT_EQ(read({}).queued, 0);
}

TEST_F(RefanoutTest, PublishesArchivedOutboxRowsAgainWhoseEventIsGone) {
  const auto kept = make_event();
  db.sql("select publish('acme', 'order.paid', '{\"n\": 1.50}', id => 'gone', version => '2')");
  db.sql("select publish('acme', 'order.paid', '2', id => 'kept')");
  db.sql(
      "insert into event_key (tenant_id, kind, key, event_id, request_hash, response) values ('acme', 'id', "
      "'kept', " +
      quoted(kept.uuid) + ", '', '{}'), ('acme', 'id', 'gone', " + quoted(ids.next()) + ", '', '{}')");
  std::vector<std::string> lines;
  for (const char* id : {"gone", "kept"})
    lines.push_back(
        db.sql(std::string("select row_to_json(o) from outbox o where public_id = '") + id + "'"));
  db.sql("truncate outbox");
  const RefanoutRange range{.since = {}, .until = ids.now() + 1h};
  const auto read = [&](RefanoutOptions options) {
    options.rate_per_second = 1e6;
    Refanout refanout(loop, link, range, options);
    EXPECT_TRUE(run(refanout.begin()));
    size_t at = 0;
    return run(refanout.from_archive("/outbox_billing.ndjson.gz", [&lines, at](std::string& line) mutable {
      if (at == lines.size()) return false;
      line = lines[at++];
      return true;
    }));
  };
  EXPECT_EQ(read({.is_dry = true}).queued, 1);
  EXPECT_EQ(db.sql("select count(*) from outbox"), "0");
  const Standing done = read({});
  EXPECT_TRUE(done.is_of_rows);
  EXPECT_EQ(done.scanned, 2);
  EXPECT_EQ(done.queued, 1);
  EXPECT_EQ(db.sql("select public_id, data, version, tenant_id from outbox"), "gone|{\"n\": 1.50}|2|acme");
  EXPECT_EQ(db.sql("select key from event_key"), "kept") << "the lost one can be published again";
}

TEST_F(RefanoutTest, LeavesOutArchivedRowsThatBreakARuleAndNamesThem) {
  const auto kept = make_event();
  db.sql("select publish('acme', 'order.paid', '{\"n\": 1.50}', id => 'gone', version => '2')");
  db.sql("select publish('acme', 'order.paid', '2', id => 'kept')");
  db.sql(
      "insert into event_key (tenant_id, kind, key, event_id, request_hash, response) values ('acme', 'id', "
      "'kept', " +
      quoted(kept.uuid) + ", '', '{}'), ('acme', 'id', 'gone', " + quoted(ids.next()) + ", '', '{}')");
  std::vector<std::string> lines;
  for (const char* id : {"gone", "kept"})
    lines.push_back(
        db.sql(std::string("select row_to_json(o) from outbox o where public_id = '") + id + "'"));
  db.sql("truncate outbox");
  const RefanoutRange range{.since = {}, .until = ids.now() + 1h};
  const auto read = [&](RefanoutOptions options) {
    options.rate_per_second = 1e6;
    Refanout refanout(loop, link, range, options);
    EXPECT_TRUE(run(refanout.begin()));
    size_t at = 0;
    return run(refanout.from_archive("/outbox_billing.ndjson.gz", [&lines, at](std::string& line) mutable {
      if (at == lines.size()) return false;
      line = lines[at++];
      return true;
    }));
  };
  lines.insert(lines.begin(), R"({"tenant_id":"acme","type":"a b","data":"1","processed_at":"2026-01-01"})");
  lines.insert(lines.begin() + 2, "no json");
  const Standing done = read({});
  EXPECT_EQ(done.scanned, 4);
  EXPECT_EQ(done.queued, 1);
  EXPECT_EQ(done.rejected, 2);
  ASSERT_EQ(done.first_rejected.size(), 2u);
  EXPECT_THAT(done.first_rejected[0], testing::HasSubstr("line 1: type must be"));
  EXPECT_THAT(done.first_rejected[1], testing::HasSubstr("line 3: it is not a JSON object"));
}

TEST_F(RefanoutTest, KnowsWhichEventsOfAnOutboxAreLost) {
  const auto kept = make_event();
  db.sql(
      "insert into event_key (tenant_id, kind, key, event_id, request_hash, response) values ('acme', 'id', "
      "'kept', " +
      quoted(kept.uuid) + ", '', '{}'), ('acme', 'id', 'gone', " + quoted(ids.next()) + ", '', '{}')");
  Refanout refanout(loop, link, hour(), {});
  const auto lost = run(refanout.lost({{"acme", "acme", "acme"}, {"never", "kept", "gone"}}));
  EXPECT_EQ(lost, (std::vector<size_t>{0, 2}));
  EXPECT_EQ(db.sql("select key from event_key"), "kept") << "the lost one can be published again";
}

}  // namespace
}  // namespace postrider::replay
