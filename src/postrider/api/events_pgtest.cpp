// Publishing and reading events over HTTP.
#include <boost/json.hpp>

#include "postrider/api/pgtest_fixture.hpp"

namespace postrider::api {
namespace {

using testing::HasSubstr;

struct EventsTest : ApiTest {
  EventsTest() { make_acme(); }

  const std::string events = "/v1/tenants/acme/events";

  Reply publish(std::string body, std::string headers = "") {
    return server->send({"POST", events, std::move(body), admin_key,
                         "content-type: application/json\r\n" + std::move(headers)});
  }
};

TEST_F(EventsTest, AnEventIsAcceptedAndCanBeRead) {
  make_endpoint();
  const auto accepted = publish(R"({"type":"invoice.paid","data":{ "n": 1 },"subject":"in_1"})");
  ASSERT_EQ(accepted.status, 202) << accepted.body;
  EXPECT_EQ(accepted.at("/tenant_id"), "acme");
  EXPECT_EQ(accepted.at("/type"), "invoice.paid");
  const auto shown = get(events + "/" + accepted.at("/id"));
  ASSERT_EQ(shown.status, 200) << shown.body;
  EXPECT_EQ(shown.at("/created_at"), accepted.at("/created_at"));
  EXPECT_THAT(shown.body, HasSubstr(R"("data":{ "n": 1 })"));
  EXPECT_EQ(shown.at("/subject"), "in_1");
}

TEST_F(EventsTest, AReaderSeesWhereItWentAndWhyNotElsewhere) {
  make_endpoint();
  const auto created = publish(R"({"type":"order.made","data":1,"id":"own-1"})");
  ASSERT_EQ(created.status, 202) << created.body;
  database.sql("update endpoint set status = 'active'");
  const auto shown = get(events + "/own-1");
  ASSERT_EQ(shown.status, 200) << shown.body;
  const auto document = shown.json();
  const auto& body = document.as_object();
  const auto sent = body.at("deliveries").as_array().size();
  const auto unsent = body.at("unmatched_endpoints").as_array().size();
  EXPECT_EQ(sent + unsent, 1u) << shown.body;
  EXPECT_EQ(std::to_string(sent), created.at("/deliveries"));
}

TEST_F(EventsTest, TheReasonsWhyItWentNowhereAreThoseOfItsTime) {
  const std::string endpoints = "/v1/tenants/acme/endpoints/";
  const auto make = [&](const std::string& id, const std::string& types) {
    const auto made =
        put(endpoints + id, R"({"url": "https://hooks.acme.example/", "event_types": [)" + types + "]}");
    EXPECT_EQ(made.status, 201) << made.body;
  };
  const auto subscribe = [&](const std::string& id, const std::string& subscription) {
    EXPECT_EQ(put(endpoints + id + "/subscriptions", R"({"data": [)" + subscription + "]}").status, 200);
  };
  make("disabled", "\"*\"");
  make("elsewhere", "\"invoice.*\"");
  make("off", "\"*\"");
  make("version", "\"*\"");
  subscribe("off", R"({"pattern": "order.*", "enabled": false})");
  subscribe("version", R"({"pattern": "order.*", "versions": ["2"]})");
  EXPECT_EQ(post(endpoints + "disabled/disable").status, 200);

  ASSERT_EQ(publish(R"({"type":"order.made","data":1,"id":"own-1"})").at("/deliveries"), "0");
  const auto reasons = [&] {
    std::string text;
    const auto document = get(events + "/own-1").json();
    for (const auto& each : document.at("unmatched_endpoints").as_array())
      text += std::string(each.at("endpoint_id").as_string()) + ": " +
              std::string(each.at("reason").as_string()) + "\n";
    return text;
  };
  const std::string as_published =
      "disabled: endpoint_disabled\nelsewhere: no_subscription_matches\noff: subscription_off\n"
      "version: version_not_wanted\n";
  EXPECT_EQ(reasons(), as_published);

  EXPECT_EQ(post(endpoints + "disabled/resume").status, 200);
  subscribe("off", R"({"pattern": "order.*"})");
  subscribe("version", R"({"pattern": "*"})");
  EXPECT_EQ(reasons(), as_published);
  subscribe("elsewhere", R"({"pattern": "order.made"})");
  make("new", "\"*\"");
  EXPECT_EQ(post(endpoints + "new/disable").status, 200);
  EXPECT_EQ(reasons(),
            "disabled: endpoint_disabled\nelsewhere: subscribed_later\nnew: endpoint_created_later\n"
            "off: subscription_off\nversion: version_not_wanted\n");
}

TEST_F(EventsTest, ARepeatIsAnsweredWith200AndOtherContentWith409) {
  const std::string key = "idempotency-key: once\r\n";
  const auto first = publish(R"({"type":"a","data":1})", key);
  const auto second = publish(R"({"type":"a","data":1})", key);
  EXPECT_EQ(first.status, 202);
  EXPECT_EQ(second.status, 200);
  EXPECT_EQ(first.body, second.body);
  const auto other = publish(R"({"type":"a","data":2})", key);
  EXPECT_EQ(other.status, 409);
  EXPECT_THAT(other.head, HasSubstr("application/problem+json"));
  EXPECT_EQ(publish(R"({"type":"a","data":2})", "idempotency-key: " + std::string(256, 'x') + "\r\n").status,
            422);
}

TEST_F(EventsTest, SaysWhatIsWrong) {
  EXPECT_EQ(publish("{").status, 400);
  EXPECT_EQ(publish(R"({"type":"a","data":1} 2)").status, 400);
  const auto bad = publish(R"({"type":"a b","extra":1})");
  EXPECT_EQ(bad.status, 422);
  EXPECT_EQ(bad.pointers(), "/extra /data /type ");
  const auto large = publish(R"({"type":"a","data":")" + std::string(300'000, 'x') + "\"}");
  EXPECT_EQ(large.status, 413);
  EXPECT_EQ(large.at("/type"), "urn:postrider:problem:content-too-large");
  EXPECT_EQ(large.at("/detail"), "Event data is 300,002 bytes; this tenant's limit is 262,144.");
  EXPECT_EQ(bad.at("/detail"), "The request is invalid.");
  EXPECT_EQ(publish("").at("/detail"), "The request body is empty.");
  EXPECT_EQ(publish(R"({"type":"a" "data":1})").at("/detail"),
            "Invalid JSON at byte 12: expected ',' or the end of the object or array.");
  EXPECT_EQ(post("/v1/tenants/nobody/events", R"({"type":"a","data":1})").status, 404);
  EXPECT_EQ(post("/v1/tenants/postrider/events", R"({"type":"a","data":1})").status, 409);
  EXPECT_EQ(get(events + "/evt_nothing").status, 404);
  EXPECT_EQ(get("/v1/tenants/nobody/events").status, 404);
  EXPECT_EQ(server->send({"POST", events, "a=b", admin_key, "content-type: text/plain\r\n"}).status, 415);
}

TEST_F(EventsTest, ABatchHasAStatusPerItem) {
  const std::string batch = R"([{"tenant_id":"acme","type":"a","data":1,"id":"x"},{"type":"a","data":1},
    {"tenant_id":"nobody","type":"a","data":1},{"tenant_id":"acme","type":"a","data":1,"id":"x"},
    {"tenant_id":"acme","type":"a","data":2,"id":"x"}])";
  const auto response = post("/v1/events/batch", batch);
  ASSERT_EQ(response.status, 200) << response.body;
  std::vector<int64_t> statuses;
  const auto document = response.json();
  for (const auto& item : document.as_array()) statuses.push_back(item.at("status").as_int64());
  EXPECT_THAT(statuses, testing::ElementsAre(202, 422, 404, 200, 409));
  EXPECT_EQ(response.at("/1/errors/0/pointer"), "/1/tenant_id");
  EXPECT_EQ(post("/v1/events/batch", "[]").body, "[]");
  EXPECT_EQ(post("/v1/events/batch", "{}").status, 422);
  EXPECT_EQ(post("/v1/events/batch", "[1").status, 400);
}

TEST_F(EventsTest, ARepeatedBatchWithAKeyGetsTheSameEvents) {
  const ApiServer::Call call{
      "POST", "/v1/events/batch",
      R"([{"tenant_id":"acme","type":"a","data":1},{"tenant_id":"acme","type":"a","data":1}])", admin_key,
      "content-type: application/json\r\nidempotency-key: b1\r\n"};
  const auto first = server->send(call);
  const auto second = server->send(call);
  EXPECT_EQ(first.at("/0/id"), second.at("/0/id"));
  EXPECT_EQ(first.at("/1/id"), second.at("/1/id"));
  EXPECT_NE(first.at("/0/id"), first.at("/1/id"));
  EXPECT_EQ(second.at("/1/status"), "200");
}

TEST_F(EventsTest, TheListIsNewestFirstInPagesAndCanBeFiltered) {
  for (int i = 0; i < 7; ++i)
    ASSERT_EQ(
        publish(R"({"type":"t)" + std::to_string(i % 2) + R"(","data":1,"id":"e)" + std::to_string(i) + "\"}")
            .status,
        202);
  const auto first = get(events + "?limit=5");
  ASSERT_EQ(first.status, 200) << first.body;
  EXPECT_EQ(first.at("/data/0/id"), "e6");
  EXPECT_EQ(first.at("/data/4/id"), "e2");
  const auto second = get(events + "?limit=5&cursor=" + first.at("/next_cursor"));
  EXPECT_EQ(second.json().at("data").as_array().size(), 2u);
  EXPECT_FALSE(second.json().as_object().contains("next_cursor"));
  const auto odd = get(events + "?type=t1");
  EXPECT_EQ(odd.json().at("data").as_array().size(), 3u);
  EXPECT_EQ(get(events + "?since=2000-01-01T00:00:00Z&until=2000-01-02T00:00:00Z").body, R"({"data":[]})");
  EXPECT_EQ(get(events + "?since=soon&cursor=x&colour=red").pointers(), "since cursor colour ");
}

TEST_F(EventsTest, TheListGoesOnIntoOlderDays) {
  ASSERT_EQ(publish(R"({"type":"t","data":1,"id":"today"})").status, 202);
  database.sql(
      "insert into event (id, tenant_id, public_id, type, body) select id_floor(now() - n * interval '1 "
      "day'),"
      " 'acme', 'old' || n, 't', '{}' from generate_series(2, 6, 2) n");
  const auto first = get(events + "?limit=2");
  EXPECT_EQ(first.at("/data/0/id") + " " + first.at("/data/1/id"), "today old2");
  const auto second = get(events + "?limit=2&cursor=" + first.at("/next_cursor"));
  EXPECT_EQ(second.at("/data/0/id") + " " + second.at("/data/1/id"), "old4 old6");
  EXPECT_FALSE(second.json().as_object().contains("next_cursor"));
}

}  // namespace
}  // namespace postrider::api
