// Callers are authenticated even while other calls keep the database busy.
#include "postrider/api/pgtest_fixture.hpp"
#include "postrider/api/stuck_calls.hpp"

namespace postrider::api {
namespace {

struct Authentication : ApiTest {
  int publish(const std::string& key) {
    return server->send({"POST", "/v1/tenants/acme/events", R"({"type":"a.b","data":1})", key}).status;
  }
};

TEST_F(Authentication, WorksWhileSlowCallsHoldEveryConnection) {
  make_acme();
  const std::string publisher = make_key("publisher", R"(,"tenant_id":"acme")");
  const std::string second = make_key("operator");
  StuckCalls stuck(*this);
  stuck.start(admin_key, 4);
  stuck.start(second, 4);
  stuck.wait_until_stuck(2);
  EXPECT_EQ(publish(publisher), 202) << "a key that is looked up now";
  EXPECT_EQ(publish(std::string(64, 'x')), 401);
  EXPECT_EQ(server->send({"POST", "/in/nowhere", "{}"}).status, 404);
}

TEST_F(Authentication, AKeyThatIsCreatedWorksAtOnce) {
  const std::string key(64, 'x');
  EXPECT_EQ(server->send({"GET", "/v1/tenants", "", key}).status, 401);
  const std::string made = make_key("reader");
  EXPECT_EQ(server->send({"GET", "/v1/tenants", "", made}).status, 200);
}

TEST_F(Authentication, AnExpiredKeyStopsAtItsTimeThoughItIsCached) {
  const std::string key = make_key("reader");
  EXPECT_EQ(server->send({"GET", "/v1/tenants", "", key}).status, 200);
  database.sql(
      "update postrider.api_key set expires_at = now() + interval '300 milliseconds' where role = 'reader'");
  server->forget_cached();
  EXPECT_EQ(server->send({"GET", "/v1/tenants", "", key}).status, 200);
  database.wait_for(
      "select bool_and(expires_at <= clock_timestamp()) from postrider.api_key where role = 'reader'", "t");
  EXPECT_EQ(server->send({"GET", "/v1/tenants", "", key}).status, 401);
}

}  // namespace
}  // namespace postrider::api
