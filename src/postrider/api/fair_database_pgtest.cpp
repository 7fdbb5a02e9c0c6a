// One tenant's slow calls leave others their share of the database.
#include <algorithm>

#include "postrider/api/pgtest_fixture.hpp"
#include "postrider/api/stuck_calls.hpp"

namespace postrider::api {
namespace {

struct FairDatabase : ApiTest {
  FairDatabase() { make_acme(); }
};

TEST_F(FairDatabase, OneTenantsSlowCallsLeaveOthersAConnection) {
  const std::string greedy = make_key("operator", R"(,"tenant_id":"acme")");
  StuckCalls stuck(*this);
  stuck.start(greedy, 8);
  stuck.wait_until_stuck(1);
  EXPECT_EQ(get("/v1/tenants").status, 200);
  EXPECT_EQ(get("/v1/tenants/acme/endpoints").status, 200);
}

TEST_F(FairDatabase, OnlySoManyCallsOfAKeyWaitForTheDatabase) {
  const std::string greedy = make_key("operator", R"(,"tenant_id":"acme")");
  StuckCalls stuck(*this);
  stuck.start(greedy, 1);
  stuck.wait_until_stuck(1);
  stuck.start(greedy, 40);
  Reply rejected;
  do {
    rejected = server->send({"GET", "/v1/tenants/acme", "", greedy});
  } while (rejected.status == 200);
  EXPECT_EQ(rejected.status, 429);
  EXPECT_EQ(rejected.at("/type"), "urn:postrider:problem:too-many-calls");
  EXPECT_EQ(rejected.header("retry-after"), "1");
  EXPECT_EQ(get("/v1/tenants/acme").status, 200) << "others are served";
  for (const int status : stuck.release()) EXPECT_TRUE(status == 200 || status == 429) << status;
}

TEST_F(FairDatabase, AStatementTimeoutIsFinalAndExplained) {
  server = std::make_unique<ApiServer>(ApiServer::Options{
      .database_url = database.url(), .guard = {}, .statement_timeout = pg::Milliseconds(50)});
  StuckCalls stuck(*this);
  const Reply response = get("/v1/audit");
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.at("/type"), "urn:postrider:problem:too-slow");
  EXPECT_THAT(response.at("/detail"), testing::HasSubstr("shorter time range"));
  EXPECT_FALSE(response.header("retry-after"));
}

}  // namespace
}  // namespace postrider::api
