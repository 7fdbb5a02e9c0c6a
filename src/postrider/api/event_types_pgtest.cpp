// The catalogue of event types over the API, and what it means for publishing.
#include <boost/json.hpp>

#include "postrider/api/pgtest_fixture.hpp"

namespace postrider::api {
namespace {

struct EventTypeCalls : ApiTest {
  EventTypeCalls() { make_acme(); }

  Reply put_paid(const std::string& validation) {
    const auto created = put("/v1/event-types/invoice.paid", R"({"description": "An invoice was paid.",
        "validation": ")" + validation + R"(", "versions": [
          {"version": "1", "schema": {"required": ["id"]}, "deprecated_at": "2027-01-01T00:00:00Z"},
          {"version": "2", "example": {"id": 7, "amount": 3},
           "schema": {"type": "object", "required": ["id", "amount"],
                      "properties": {"amount": {"type": "integer", "minimum": 1}}}}]})");
    server->forget_cached();
    return created;
  }
  Reply publish(const std::string& body) { return post("/v1/tenants/acme/events", body); }
};

TEST_F(EventTypeCalls, WhatIsPutCanBeReadListedReplacedAndDeleted) {
  const auto made = put_paid("off");
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(made.at("/versions/0/deprecated_at"), "2027-01-01T00:00:00Z");
  EXPECT_EQ(put_paid("off").header("etag"), made.header("etag")) << "the same once more changes nothing";
  EXPECT_EQ(get("/v1/event-types/invoice.paid").body, made.body);
  EXPECT_EQ(put("/v1/event-types/invoice.paid", made.body).status, 200) << "what is shown can be put back";
  EXPECT_EQ(put("/v1/event-types/a.b", "{}").status, 201);
  const auto page_one = get("/v1/event-types?limit=1");
  EXPECT_EQ(page_one.at("/data/0/name"), "a.b");
  EXPECT_EQ(get("/v1/event-types?cursor=" + page_one.at("/next_cursor")).at("/data/0/name"), "invoice.paid");
  EXPECT_EQ(remove("/v1/event-types/a.b").status, 204);
  EXPECT_EQ(remove("/v1/event-types/a.b").status, 404);
  EXPECT_EQ(get("/v1/event-types/a.b").status, 404);
}

TEST_F(EventTypeCalls, BadDocumentsArePointedAt) {
  const auto pointers = [this](const std::string& body) { return put("/v1/event-types/a", body).pointers(); };
  EXPECT_EQ(pointers(R"({"validation": "maybe", "colour": 1})"), "/validation /colour ");
  EXPECT_EQ(pointers(R"({"versions": [{"version": "1", "schema": {"items": {"type": "x"}}}]})"),
            "/versions/0/schema/items/type ");
  EXPECT_EQ(pointers(R"({"versions": [{"version": "1", "schema": {"properties": {"a": {"type": "string"}}},
                                       "example": {"a": 1}}]})"),
            "/versions/0/example/a ");
  EXPECT_EQ(pointers(R"({"versions": [{"version": "1"}, {"version": "1"}]})"), "/versions/1/version ");
  EXPECT_EQ(pointers(R"({"versions": [{"version": "a b", "deprecated_at": "soon"}]})"),
            "/versions/0/version /versions/0/deprecated_at ");
  EXPECT_EQ(pointers(R"({"versions": [{"version": "1", "schema": {"$ref": "http://example.com/s"}}]})"),
            "/versions/0/schema/$ref ");
  EXPECT_EQ(put("/v1/event-types/a..b", "{}").pointers(), "name ");
}

TEST_F(EventTypeCalls, RejectRejectsWhatDoesNotFitWithPointersIntoTheRequest) {
  put_paid("reject");
  EXPECT_EQ(publish(R"({"type": "invoice.paid", "data": {"id": 1, "amount": 2}})").status, 202);
  const auto rejected = publish(R"({"type": "invoice.paid", "data": {"id": 1, "amount": 0}})");
  EXPECT_EQ(rejected.status, 422);
  EXPECT_EQ(rejected.pointers(), "/data/amount ");
  EXPECT_EQ(publish(R"({"type": "invoice.paid", "version": "1", "data": {"id": 1}})").status, 202);
  EXPECT_EQ(publish(R"({"type": "invoice.paid", "version": "9", "data": {"id": 1}})").pointers(),
            "/version ");
  EXPECT_EQ(publish(R"({"type": "invoice.sent", "data": {"amount": 0}})").status, 202)
      << "not in the catalogue";
  const auto batch = post("/v1/events/batch", R"([{"tenant_id": "acme", "type": "invoice.paid", "data": 1},
      {"tenant_id": "acme", "type": "invoice.paid", "data": {"id": 1, "amount": 1}}])");
  EXPECT_EQ(batch.at("/0/status"), "422");
  EXPECT_EQ(batch.at("/0/errors/0/pointer"), "/0/data");
  EXPECT_EQ(batch.at("/1/status"), "202");
}

TEST_F(EventTypeCalls, WarnAndOffTakeEverything) {
  put_paid("warn");
  const std::string unfit = R"({"type": "invoice.paid", "data": "text"})";
  EXPECT_EQ(publish(unfit).status, 202);
  EXPECT_THAT(get("/metrics").body, testing::HasSubstr("webhook_invalid_events_total{action=\"warned\"} 1"));
  put_paid("off");
  EXPECT_EQ(publish(unfit).status, 202);
  EXPECT_THAT(get("/metrics").body, testing::HasSubstr("webhook_invalid_events_total{action=\"warned\"} 1"));
}

TEST_F(EventTypeCalls, OnlyOperatorsChangeTheCatalogue) {
  EXPECT_EQ(server->send({"PUT", "/v1/event-types/a", "{}", ""}).status, 401);
}

}  // namespace
}  // namespace postrider::api
