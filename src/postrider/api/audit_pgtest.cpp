#include "postrider/api/pgtest_fixture.hpp"

namespace postrider::api {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Audit : ApiTest {};

TEST_F(Audit, ShowsTheCallThatMadeTheChange) {
  make_acme();
  const auto paused = post("/v1/tenants/acme/pause", R"({"reason": "incident"})");
  const auto log = get("/v1/audit?object=acme&action=tenant.pause");
  EXPECT_EQ(log.status, 200);
  EXPECT_EQ(log.at("/data/0/actor/kind"), "key");
  EXPECT_THAT(log.at("/data/0/actor/id"), StartsWith("key_"));
  EXPECT_EQ(log.at("/data/0/tenant_id"), "acme");
  EXPECT_EQ(log.at("/data/0/reason"), "incident");
  EXPECT_EQ(log.at("/data/0/address"), "127.0.0.1");
  EXPECT_EQ(log.at("/data/0/request_id"), paused.header("x-request-id"));
  EXPECT_EQ(log.at("/data/0/before"), R"({"status":"active","status_reason":null})");
  EXPECT_EQ(log.at("/data/0/after"), R"({"status":"paused","status_reason":"incident"})");
}

TEST_F(Audit, PagesFollowTheirCursor) {
  make_acme();
  for (int i = 0; i < 3; ++i) {
    post("/v1/tenants/acme/pause");
    post("/v1/tenants/acme/resume");
  }
  int seen = 0;
  std::string cursor;
  for (int pages = 0; pages < 10; ++pages) {
    const auto page = get("/v1/audit?tenant=acme&limit=2" + cursor);
    ASSERT_EQ(page.status, 200) << page.body;
    seen += static_cast<int>(page.json().at("data").as_array().size());
    if (page.at("/next_cursor") == "(nothing)") break;
    cursor = "&cursor=" + page.at("/next_cursor");
  }
  EXPECT_EQ(seen, 7);
}

TEST_F(Audit, BadParametersAreNamed) {
  EXPECT_EQ(get("/v1/audit?since=yesterday&wrong=1").pointers(), "since wrong ");
  EXPECT_EQ(get("/v1/audit?cursor=c1_00").pointers(), "cursor ");
}

struct Conditions : ApiTest {};

TEST_F(Conditions, IfMatchRejectsAChangeOfWhatIsNoLongerThat) {
  make_acme();
  const std::string tag = get("/v1/tenants/acme").header("etag").value_or("");
  ASSERT_THAT(tag, StartsWith("\"r1-"));
  ApiServer::Call change{"PATCH", "/v1/tenants/acme", R"({"name": "A"})", admin_key};
  change.headers += "if-match: " + tag + "\r\n";
  const auto changed = server->send(change);
  EXPECT_EQ(changed.status, 200);
  EXPECT_EQ(changed.header("etag"), get("/v1/tenants/acme").header("etag"));
  change.body = R"({"name": "B"})";
  const auto late = server->send(change);
  EXPECT_EQ(late.status, 412);
  EXPECT_THAT(late.body, HasSubstr("precondition-failed"));
  for (const std::string other : {"*", "\"x\", \"r3-0\""}) {
    change.headers = "content-type: application/json\r\nif-match: " + other + "\r\n";
    change.body = R"({"name": ")" + std::to_string(other.size()) + "\"}";
    const auto response = server->send(change);
    EXPECT_EQ(response.status, 200) << other << response.body;
  }
  for (const std::string other : {"W/\"r4-0\"", "\"x\"", "r4"}) {
    change.headers = "content-type: application/json\r\nif-match: " + other + "\r\n";
    EXPECT_EQ(server->send(change).status, 412) << other;
  }
}

TEST_F(Conditions, WhatTheCallerHasIsNotSentAgain) {
  make_acme();
  const auto first = get("/v1/tenants/acme");
  ApiServer::Call again{"GET", "/v1/tenants/acme", "", admin_key};
  again.extra_headers = "if-none-match: \"x\", W/" + first.header("etag").value_or("") + "\r\n";
  const auto known = server->send(again);
  EXPECT_EQ(known.status, 304);
  EXPECT_EQ(known.body, "");
  EXPECT_EQ(known.header("etag"), first.header("etag"));
  make_endpoint();  // endpoint_count is in the document
  EXPECT_EQ(server->send(again).status, 200);
}

}  // namespace
}  // namespace postrider::api
