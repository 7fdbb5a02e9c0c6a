// Lists of deliveries: queued and ended ones in one order, for every filter.
#include <boost/json.hpp>

#include "postrider/api/pgtest_fixture.hpp"

namespace postrider::api {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct DeliveriesTest : ApiTest {
  DeliveriesTest() {
    make_acme();
    endpoint = make_endpoint();
    endpoint_id = endpoint.substr(endpoint.rfind('/') + 1);
  }

  const std::string deliveries = "/v1/tenants/acme/deliveries";
  std::string endpoint, endpoint_id;

  std::string publish(const std::string& id, const std::string& more = R"("type":"invoice.paid")") {
    const auto response = post("/v1/tenants/acme/events", R"({"id":")" + id + R"(","data":1,)" + more + "}");
    EXPECT_EQ(response.status, 202) << response.body;
    return id;
  }

  // As settle does: the delivery of this event leaves the queue, or stays to be tried again.
  void attempt(const std::string& event, int number, const std::string& outcome, int status_code = 200) {
    const std::string of_event =
        "(select q.* from queue q join event e on e.id = q.event_id where e.public_id = '" + event + "')";
    database.sql(
        "insert into attempt (delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, outcome, "
        "status_code, error, error_detail, started_at, total_us, preview, node_id, created_at, replay_id) "
        "select id, " +
        std::to_string(number) + ", bucket, endpoint_id, event_id, tenant_id, '" + outcome + "', " +
        std::to_string(status_code) + ", " +
        (outcome == "delivered" ? "null, null" : "'http_status', 'said no'") +
        ", now(), 5000, 'the response', gen_random_uuid(), created_at, replay_id from " + of_event + " q");
    if (outcome == "retrying")
      database.sql(
          "update queue set attempts = " + std::to_string(number) +
          ", retry = true, due_at = now() + interval '1 hour' where event_id = (select id from event "
          "where public_id = '" +
          event + "')");
    if (outcome == "dead_letter")
      database.sql(
          "insert into dead_letter (delivery_id, bucket, endpoint_id, event_id, tenant_id, cause, attempts, "
          "created_at) select id, bucket, endpoint_id, event_id, tenant_id, 'rejected', 1, created_at from " +
          of_event + " q");
    if (outcome != "retrying")
      database.sql("delete from queue where event_id = (select id from event where public_id = '" + event +
                   "')");
  }

  // The events of a page, in its order.
  std::vector<std::string> events_of(const std::string& target) {
    const auto response = get(target);
    EXPECT_EQ(response.status, 200) << target << ": " << response.body;
    std::vector<std::string> events;
    if (response.status != 200) return events;
    const auto document = response.json();
    for (const auto& item : document.at("data").as_array())
      events.emplace_back(item.at("event_id").as_string());
    return events;
  }
  // All pages of it.
  std::vector<std::string> walk(const std::string& target) {
    std::vector<std::string> events;
    std::string cursor;
    for (int pages = 0; pages < 100; ++pages) {
      const auto response = get(target + (cursor.empty() ? "" : "&cursor=" + cursor));
      EXPECT_EQ(response.status, 200) << target << ": " << response.body;
      const auto document = response.json();
      for (const auto& item : document.at("data").as_array())
        events.emplace_back(item.at("event_id").as_string());
      if (!document.as_object().contains("next_cursor")) return events;
      cursor = response.at("/next_cursor");
    }
    ADD_FAILURE() << "the list has no end";
    return events;
  }

  // Five deliveries, one in each state.
  void one_of_each() {
    for (const char* id : {"waits", "retries", "arrived", "died", "stopped"}) publish(id);
    attempt("retries", 1, "retrying", 503);
    attempt("arrived", 1, "delivered");
    attempt("died", 1, "dead_letter", 400);
    attempt("stopped", 0, "canceled");
  }
};

TEST_F(DeliveriesTest, ATypeFilterTakesPatterns) {
  publish("paid", R"("type":"invoice.paid")");
  publish("sent", R"("type":"invoice.pdf.sent")");
  attempt("paid", 1, "delivered");
  attempt("sent", 1, "dead_letter", 400);
  for (const std::string base : {"/v1/deliveries", "/v1/tenants/acme/deliveries"}) {
    EXPECT_THAT(events_of(base + "?type=invoice.*"), ElementsAre("sent", "paid"));
    EXPECT_THAT(events_of(base + "?type=invoice.pdf.*"), ElementsAre("sent"));
    EXPECT_THAT(events_of(base + "?type=*"), ElementsAre("sent", "paid"));
    EXPECT_EQ(get(base + "?type=invo*").pointers(), "type ");
  }
  EXPECT_THAT(events_of("/v1/tenants/acme/attempts?type=invoice.*"), ElementsAre("sent", "paid"));
  const auto events = get("/v1/tenants/acme/events?type=invoice.*");
  EXPECT_EQ(events.at("/data/0/id") + " " + events.at("/data/1/id"), "sent paid");
  EXPECT_EQ(get("/v1/tenants/acme/events?type=.*").pointers(), "type ");
  EXPECT_EQ(get("/v1/stats?type=invoice.*").pointers(), "type ");
}

struct DeadLetterReplays : DeliveriesTest {
  // A second tenant with a dead letter of its own; the ID of that delivery.
  std::string beta_dead_letter() {
    EXPECT_EQ(put("/v1/tenants/beta", "{}").status, 201);
    EXPECT_EQ(
        post("/v1/tenants/beta/endpoints", R"({"url": "https://hooks.example.com/b", "event_types": ["*"]})")
            .status,
        201);
    EXPECT_EQ(post("/v1/tenants/beta/events", R"({"id": "of-beta", "type": "a.b", "data": 1})").status, 202);
    attempt("of-beta", 1, "dead_letter", 400);
    return get("/v1/tenants/beta/dead-letters").at("/data/0/id");
  }
  // "tenant:number of deliveries or -" of each replay.
  std::string replays() {
    return database.sql(
        "select string_agg(tenant_id || ':' || coalesce(cardinality(delivery_ids)::text, '-'), ' ' order by "
        "tenant_id) from replay");
  }
};

TEST_F(DeadLetterReplays, OverAllTenantsThereIsOneReplayForEach) {
  one_of_each();
  beta_dead_letter();
  put("/v1/tenants/gamma", "{}");
  const auto queued = post("/v1/dead-letters/replay", R"({"all": true, "reason": "after the outage"})");
  ASSERT_EQ(queued.status, 202) << queued.body;
  EXPECT_EQ(queued.at("/data/0/tenant_id"), "acme");
  EXPECT_EQ(queued.at("/data/1/tenant_id"), "beta");
  EXPECT_EQ(queued.at("/data/1/status"), "queued");
  EXPECT_EQ(replays(), "acme:- beta:-");
  EXPECT_EQ(get("/v1/tenants/beta/replays/" + queued.at("/data/1/id")).at("/reason"), "after the outage");
  EXPECT_EQ(
      database.sql("select string_agg(action, ' ' order by id) from audit where action like '%replay%'"),
      "dead_letter.replay replay.create replay.create");
}

TEST_F(DeadLetterReplays, OverAllTenantsIdsAndFiltersChooseTheTenants) {
  one_of_each();
  const std::string of_beta = beta_dead_letter();
  const std::string of_acme = get("/v1/tenants/acme/dead-letters").at("/data/0/id");
  const std::string all = "/v1/dead-letters/replay";
  EXPECT_EQ(post(all, R"({"cause": "gone", "reason": "x"})").at("/data"), "[]");
  EXPECT_EQ(post(all, R"({"until": "2020-01-01T00:00:00Z", "reason": "x"})").status, 422);
  EXPECT_EQ(post(all, R"({"endpoint": "none", "reason": "x"})").status, 404);
  EXPECT_EQ(replays(), "");
  EXPECT_EQ(post(all, R"({"ids": [")" + of_beta + R"("], "reason": "x"})").at("/data/0/tenant_id"), "beta");
  EXPECT_EQ(replays(), "beta:1");
  EXPECT_EQ(post(all, R"({"endpoint": ")" + endpoint_id + R"(", "reason": "x"})").at("/data/0/tenant_id"),
            "acme");
  EXPECT_EQ(post(all, R"({"ids": [")" + of_beta + R"(", ")" + of_acme + R"("], "reason": "x"})").status, 202);
  EXPECT_EQ(replays(), "acme:- acme:1 beta:1 beta:1");
}

TEST_F(DeadLetterReplays, WhatToReplayMustBeGiven) {
  for (const std::string path : {"/v1/dead-letters/replay", "/v1/tenants/acme/dead-letters/replay"}) {
    EXPECT_EQ(post(path, R"({"reason": "x"})").pointers(), "/ids ");
    EXPECT_EQ(post(path, R"({"all": true})").pointers(), "/reason ");
    EXPECT_EQ(post(path, R"({"all": true, "ids": ["dlv_01980a6c7d5e7b0e9d0c2f6f8a4b3c21"], "reason": "x"})")
                  .pointers(),
              "/ids ");
  }
  EXPECT_EQ(post("/v1/tenants/acme/dead-letters/replay", R"({"all": true, "reason": "x"})").status, 202);
}

TEST_F(DeliveriesTest, TheStateFollowsFromQueueRowLastAttemptAndDeadLetter) {
  one_of_each();
  EXPECT_THAT(events_of(deliveries), ElementsAre("stopped", "died", "arrived", "retries", "waits"));
  const auto page = get(deliveries);
  EXPECT_EQ(page.at("/data/0/status"), "canceled");
  EXPECT_EQ(page.at("/data/0/attempts"), "0");
  EXPECT_EQ(page.at("/data/1/status"), "dead_letter");
  EXPECT_EQ(page.at("/data/1/last_error"), "http_status");
  EXPECT_EQ(page.at("/data/2/status"), "delivered");
  EXPECT_NE(page.at("/data/2/delivered_at"), "null");
  EXPECT_EQ(page.at("/data/3/status"), "retrying");
  EXPECT_EQ(page.at("/data/3/attempts"), "1");
  EXPECT_EQ(page.at("/data/3/last_status_code"), "503");
  EXPECT_NE(page.at("/data/3/next_attempt_at"), "null");
  EXPECT_EQ(page.at("/data/4/status"), "pending");
  EXPECT_EQ(page.at("/data/4/endpoint_id"), endpoint_id);
  EXPECT_EQ(page.at("/data/4/event_type"), "invoice.paid");
  EXPECT_FALSE(page.json().as_object().contains("next_cursor"));
}

TEST_F(DeliveriesTest, EveryFilterFindsItsOwn) {
  one_of_each();
  publish("other", R"("type":"invoice.sent","subject":"in_7")");
  for (const std::string& base : {deliveries, std::string("/v1/deliveries")}) {
    SCOPED_TRACE(base);
    EXPECT_THAT(events_of(base + "?status=pending"), ElementsAre("waits", "other"));
    EXPECT_THAT(events_of(base + "?status=retrying"), ElementsAre("retries"));
    EXPECT_THAT(events_of(base + "?status=delivered"), ElementsAre("arrived"));
    EXPECT_THAT(events_of(base + "?status=dead_letter"), ElementsAre("died"));
    EXPECT_THAT(events_of(base + "?status=canceled"), ElementsAre("stopped"));
    EXPECT_THAT(events_of(base + "?type=invoice.sent"), ElementsAre("other"));
    EXPECT_THAT(events_of(base + "?type=invoice.paid&status=dead_letter"), ElementsAre("died"));
    EXPECT_THAT(events_of(base + "?subject=in_7"), ElementsAre("other"));
    EXPECT_THAT(events_of(base + "?subject=in_8"), ElementsAre());
    EXPECT_THAT(events_of(base + "?endpoint=" + endpoint_id + "&status=dead_letter"), ElementsAre("died"));
    EXPECT_THAT(events_of(base + "?endpoint=" + endpoint_id + "&status=pending"),
                ElementsAre("waits", "other"));
    EXPECT_EQ(events_of(base + "?endpoint=" + endpoint_id).size(), 6u);
    EXPECT_THAT(events_of(base + "?until=2020-01-01T00:00:00Z"), ElementsAre());
    EXPECT_EQ(events_of(base + "?since=2020-01-01T00:00:00Z").size(), 6u);
  }
  EXPECT_THAT(events_of(deliveries + "?event=died"), ElementsAre("died"));
  EXPECT_THAT(events_of(deliveries + "?event=died&endpoint=" + endpoint_id), ElementsAre("died"));
  EXPECT_THAT(events_of(deliveries + "?event=died&status=delivered"), ElementsAre());
  EXPECT_THAT(events_of(deliveries + "?event=nothing"), ElementsAre());
  EXPECT_EQ(get("/v1/deliveries?event=died").pointers(), "event ");
  EXPECT_EQ(get(deliveries + "?endpoint=nobody").status, 404);
  EXPECT_EQ(get(deliveries + "?status=gone&since=x&colour=red").pointers(), "status since colour ");
  EXPECT_EQ(get(deliveries + "?cursor=c1_61").status, 422);
}

TEST_F(DeliveriesTest, PagesFollowEachOtherWithoutGapsOrRepeats) {
  std::vector<std::string> all;
  for (int i = 0; i < 23; ++i) {
    all.push_back(publish("e" + std::to_string(i)));
    if (i % 3 == 0) attempt(all.back(), 1, "delivered");
    if (i % 5 == 1 && i % 3 != 0) attempt(all.back(), 1, "retrying", 500);
  }
  const std::vector<std::string> newest_first(all.rbegin(), all.rend());
  EXPECT_EQ(walk(deliveries + "?limit=4"), newest_first);
  EXPECT_EQ(walk("/v1/deliveries?limit=3"), newest_first);
  EXPECT_EQ(walk(deliveries + "?limit=4&endpoint=" + endpoint_id), newest_first);
  for (const std::string& base : {deliveries + "?", std::string("/v1/deliveries?")}) {
    EXPECT_EQ(walk(base + "limit=4&status=delivered").size(), 8u);
    auto live = walk(base + "limit=4&status=pending");
    const auto retrying = walk(base + "limit=1&status=retrying");
    EXPECT_EQ(live.size() + retrying.size(), 15u);
  }
}

TEST_F(DeliveriesTest, ListsGoOnIntoOlderDays) {
  publish("today");
  attempt("today", 1, "delivered");
  for (const int days : {2, 4, 6}) {
    const std::string then = "now() - interval '" + std::to_string(days) + " days'";
    const std::string event = "'old" + std::to_string(days) + "'";
    database.sql("insert into event (id, tenant_id, public_id, type, body) values (id_floor(" + then +
                 "), 'acme', " + event + ", 'invoice.paid', '{}')");
    database.sql(
        "insert into attempt (delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, outcome, "
        "started_at, total_us, node_id, created_at) select e.id, 1, bucket, endpoint_id, e.id, 'acme', "
        "'delivered', " +
        then + ", 1, node_id, " + then +
        " from attempt, event e where attempt.created_at > now() - interval '1 hour' and e.public_id = " +
        event);
  }
  for (const std::string list :
       {"/v1/tenants/acme/deliveries", "/v1/deliveries", "/v1/tenants/acme/attempts", "/v1/attempts"})
    for (const std::string& filter : {std::string(), "&endpoint=" + endpoint_id}) {
      SCOPED_TRACE(list + filter);
      EXPECT_THAT(walk(list + "?limit=2" + filter), ElementsAre("today", "old2", "old4", "old6"));
      EXPECT_EQ(events_of(list + "?limit=2" + filter).size(), 2u) << "the first page is full";
    }
}

TEST_F(DeliveriesTest, OneDeliveryShowsItsWholeTimeline) {
  publish("tried");
  attempt("tried", 1, "retrying", 503);
  attempt("tried", 2, "dead_letter", 400);
  const auto page = get(deliveries + "?event=tried");
  const std::string id = page.at("/data/0/id");
  EXPECT_EQ(page.at("/data/0/attempts"), "2");
  const auto shown = get(deliveries + "/" + id);
  ASSERT_EQ(shown.status, 200) << shown.body;
  EXPECT_EQ(shown.at("/status"), "dead_letter");
  EXPECT_EQ(shown.at("/dead_letter/cause"), "rejected");
  EXPECT_EQ(shown.at("/timeline/0/outcome"), "retrying");
  EXPECT_EQ(shown.at("/timeline/1/status_code"), "400");
  EXPECT_EQ(shown.at("/timeline/1/response_preview"), "the response");
  EXPECT_EQ(shown.at("/timeline/1/phases/total_us"), "5000");
  EXPECT_EQ(get("/v1/deliveries/" + id).body, shown.body);
  const auto first = get(deliveries + "/" + id + "/attempts?limit=1");
  EXPECT_EQ(first.at("/data/0/attempt"), "1");
  const auto second = get(deliveries + "/" + id + "/attempts?limit=1&cursor=" + first.at("/next_cursor"));
  EXPECT_EQ(second.at("/data/0/attempt"), "2");
  EXPECT_FALSE(second.json().as_object().contains("next_cursor"));
  post("/v1/tenants", R"({"id":"other"})");
  EXPECT_EQ(get("/v1/tenants/other/deliveries/" + id).status, 404);
  EXPECT_EQ(get(deliveries + "/dlv_nothing").status, 404);
}

TEST_F(DeliveriesTest, AnEndWithoutAnExchangeKeepsWhatWasTriedBefore) {
  publish("swept");
  attempt("swept", 1, "retrying", 503);
  attempt("swept", 0, "canceled");
  const auto page = get(deliveries);
  EXPECT_EQ(page.at("/data/0/status"), "canceled");
  EXPECT_EQ(page.at("/data/0/attempts"), "1");
  EXPECT_EQ(page.at("/data/0/last_status_code"), "503");
  EXPECT_THAT(events_of(deliveries + "?status=canceled"), ElementsAre("swept"));
  const auto shown = get(deliveries + "/" + page.at("/data/0/id"));
  EXPECT_EQ(shown.at("/timeline/1/attempt"), "0") << "the note comes last";
}

TEST_F(DeliveriesTest, AReplayIsFoundWithItsEvent) {
  publish("again");
  attempt("again", 1, "delivered");
  database.sql(
      "insert into queue (bucket, id, event_id, endpoint_id, tenant_id, due_at, created_at, replay_id) "
      "select "
      "bucket, id_floor(now() + interval '1 minute'), event_id, endpoint_id, tenant_id, now(), now(), "
      "gen_random_uuid() from attempt");
  EXPECT_THAT(events_of(deliveries + "?event=again"), ElementsAre("again", "again"));
  EXPECT_THAT(events_of(deliveries), ElementsAre("again", "again"));
  EXPECT_THAT(get(deliveries + "?event=again").at("/data/0/replay_id"), HasSubstr("rpl_"));
  const auto event = get("/v1/tenants/acme/events/again");
  EXPECT_EQ(event.at("/deliveries/0/status"), "pending");
  EXPECT_EQ(event.at("/deliveries/1/status"), "delivered");
  EXPECT_EQ(event.json().at("unmatched_endpoints").as_array().size(), 0u);
}

TEST_F(DeliveriesTest, AnEventThatNobodyGotSaysWhy) {
  patch(endpoint, R"({"event_types":["order.*"]})");
  publish("lonely");
  const auto shown = get("/v1/tenants/acme/events/lonely");
  EXPECT_EQ(shown.at("/unmatched_endpoints/0/reason"), "no_subscription_matches");
  EXPECT_EQ(shown.at("/explanation"),
            "No endpoint received this event: 1 endpoint: no_subscription_matches.");
  remove(endpoint);
  EXPECT_EQ(get("/v1/tenants/acme/events/lonely").at("/explanation"),
            "No endpoint received this event: the tenant has no endpoints.");
}

TEST_F(DeliveriesTest, AForeignTenantsDeliveriesAreNotThere) {
  one_of_each();
  post("/v1/tenants", R"({"id":"other"})");
  EXPECT_THAT(events_of("/v1/tenants/other/deliveries"), ElementsAre());
  for (const char* status : {"pending", "retrying", "delivered", "dead_letter", "canceled"})
    EXPECT_THAT(events_of(std::string("/v1/tenants/other/deliveries?status=") + status), ElementsAre());
  EXPECT_EQ(get("/v1/tenants/other/deliveries?endpoint=" + endpoint_id).status, 404);
  EXPECT_EQ(get("/v1/tenants/nobody/deliveries").status, 404);
}

TEST_F(DeliveriesTest, ABacklogIsListedNewestFirstAndPendingInOrder) {
  publish("first");
  database.sql(
      "insert into queue (bucket, id, event_id, endpoint_id, tenant_id, due_at, created_at) select q.bucket, "
      "(left(replace(id_floor(now() + n * interval '1 ms')::text, '-', ''), 20) || e.delivery_tail)::uuid, "
      "q.event_id, q.endpoint_id, q.tenant_id, now() + n * interval '1 ms', now() from queue q join endpoint "
      "e "
      "on e.id = q.endpoint_id, generate_series(1, 5000) n where q.bucket >= 0");
  const auto newest = get(deliveries + "?limit=3");
  ASSERT_EQ(newest.status, 200) << newest.body;
  EXPECT_EQ(newest.json().at("data").as_array().size(), 3u);
  EXPECT_EQ("dlv_" + database.sql("select max(replace(id::text, '-', '')) from queue where bucket >= 0"),
            newest.at("/data/0/id"));
  EXPECT_EQ(walk(deliveries + "?limit=250").size(), 5001u);
  EXPECT_EQ(walk(deliveries + "?limit=250&status=pending").size(), 5001u);
  EXPECT_EQ(walk("/v1/deliveries?limit=250&status=pending").size(), 5001u);
}

}  // namespace
}  // namespace postrider::api
