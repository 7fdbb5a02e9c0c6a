// Streams, exports and waiting claims end with their key.
#include <future>
#include <thread>

#include "postrider/api/pgtest_fixture.hpp"

namespace postrider::api {
namespace {

using testing::EndsWith;
using testing::Not;

struct Watched : ApiTest {
  Watched() { make_acme(); }

  ApiServer::Open open(const std::string& target, const std::string& key) {
    return ApiServer::Open(*server, {"GET", target, "", key});
  }
  void change_keys(const std::string& set) {
    database.sql("update postrider.api_key set " + set + " where role = 'operator'");
    server->forget_cached();
  }
  void wait_until_ended() {
    const base::SteadyTime deadline = base::BootClock::now() + std::chrono::seconds(60);
    while (server->open_bodies() > 0 && base::BootClock::now() < deadline) std::this_thread::yield();
    EXPECT_EQ(server->open_bodies(), 0);
  }
  // A stream of acme by a key of its own ends once the keys were changed.
  void expect_end_when(const std::string& set) {
    const std::string key = make_key("operator", R"(,"tenant_id":"acme")");
    auto stream = open("/v1/tenants/acme/stream", key);
    stream.read_until("event: ready");
    change_keys(set);
    stream.read_to_end();
    wait_until_ended();
  }
};

TEST_F(Watched, AStreamEndsWhenItsKeyIsRevoked) {
  expect_end_when("revoked_at = now()");
}

TEST_F(Watched, AStreamEndsWhenItsKeyExpires) {
  expect_end_when("expires_at = now() + interval '1 second'");
}

TEST_F(Watched, AStreamEndsWhenItsKeyLosesThePayloads) {
  expect_end_when("payloads = false");
}

TEST_F(Watched, AStreamEndsWhenItsKeyHasAnotherRole) {
  expect_end_when("role = 'reader'");
}

TEST_F(Watched, AStreamEndsWhenItsTenantIsDeleted) {
  auto stream = open("/v1/tenants/acme/stream", admin_key);
  stream.read_until("event: ready");
  EXPECT_EQ(remove("/v1/tenants/acme").status, 204);
  server->forget_cached();
  stream.read_to_end();
  wait_until_ended();
}

TEST_F(Watched, AStreamGoesOnWhenOtherKeysChange) {
  auto stream = open("/v1/tenants/acme/stream", admin_key);
  stream.read_until("event: ready");
  const std::string other = make_key("operator");
  change_keys("revoked_at = now()");
  EXPECT_EQ(server->send({"GET", "/v1/tenants", "", other}).status, 401);
  post("/v1/tenants/acme/events", R"({"type":"still.there","data":1})");
  stream.read_until("still.there");
}

// Its reader takes nothing, so the server is in the middle of it when the key goes.
TEST_F(Watched, AnExportIsCutOffWhenItsKeyIsRevoked) {
  database.sql(
      "insert into postrider.event (id, tenant_id, type, subject, body) select (left(replace("
      "postrider.id_floor(now())::text, '-', ''), 12) || lpad(to_hex(n), 20, '0'))::uuid, 'acme', 'a.b', "
      "repeat('x', 250), '{}' from generate_series(1, 40000) n");
  const std::string key = make_key("operator");
  auto download = open("/v1/tenants/acme/events?format=ndjson", key);
  download.read_until("200 OK");
  change_keys("revoked_at = now()");
  wait_until_ended();
  EXPECT_THAT(download.read_to_end(), Not(EndsWith("\r\n0\r\n\r\n")));
}

TEST_F(Watched, AClaimThatWaitsEndsWhenItsKeyIsRevoked) {
  EXPECT_EQ(post("/v1/sources", R"({"id":"src","provider":"github","secret":"0123456789abcdef"})").status,
            201);
  const std::string key = make_key("operator");
  auto waiting = std::async(std::launch::async, [this, key] {
    return server->send(
        {"POST", "/v1/inbox/claim", R"({"worker":"w","source":"src","wait_seconds":30})", key});
  });
  database.wait_for("select last_used_at is not null from postrider.api_key where role = 'operator'", "t");
  change_keys("revoked_at = now()");
  EXPECT_EQ(waiting.get().status, 401);
}

TEST_F(Watched, ATenantsStreamsLeaveRoomForOthers) {
  post("/v1/tenants", R"({"id":"other"})");
  const std::string key = make_key("reader", R"(,"tenant_id":"acme")");
  const std::string sibling = make_key("operator", R"(,"tenant_id":"acme")");
  std::vector<std::unique_ptr<ApiServer::Open>> streams;
  Reply rejected;
  for (int i = 0; i < 10; ++i) {
    streams.push_back(std::make_unique<ApiServer::Open>(
        *server, ApiServer::Call{"GET", "/v1/tenants/acme/stream", "", i % 2 ? key : sibling}));
    streams.back()->read_until("event: ready");
  }
  rejected = server->send({"GET", "/v1/tenants/acme/stream", "", key});
  EXPECT_EQ(rejected.status, 429) << rejected.body;
  EXPECT_EQ(rejected.at("/type"), "urn:postrider:problem:too-many-streams");
  EXPECT_EQ(server->send({"GET", "/v1/tenants/acme/deliveries?format=csv", "", key}).status, 200)
      << "exports are counted on their own";
  auto others = open("/v1/tenants/other/stream", make_key("reader", R"(,"tenant_id":"other")"));
  others.read_until("event: ready");
}

}  // namespace
}  // namespace postrider::api
