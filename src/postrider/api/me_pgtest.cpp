#include "postrider/api/pgtest_fixture.hpp"

namespace postrider::api {
namespace {

struct MeCalls : ApiTest {
  Reply me(const std::string& key) { return server->send({"GET", "/v1/me", "", key}); }
};

TEST_F(MeCalls, AnAdminKeySeesItselfAndTheServer) {
  const auto shown = me(admin_key);
  ASSERT_EQ(shown.status, 200) << shown.body;
  EXPECT_EQ(shown.at("/kind"), "key");
  EXPECT_EQ(shown.at("/role"), "admin");
  EXPECT_EQ(shown.at("/tenant_id"), "null");
  EXPECT_EQ(shown.at("/payloads"), "true");
  EXPECT_EQ(shown.at("/expires_at"), "null");
  EXPECT_EQ(shown.at("/capabilities"), R"(["read","publish","customer","operate","operators","administer"])");
  EXPECT_EQ(shown.at("/server/version"), "0.1.0");
}

TEST_F(MeCalls, ABoundKeyOfAnyRoleSeesItsTenantAndItsRights) {
  make_acme();
  const std::string operate =
      make_key("operator", R"(,"tenant_id":"acme","expires_at":"2099-01-01T00:00:00Z")");
  const auto bound = me(operate);
  ASSERT_EQ(bound.status, 200) << bound.body;
  EXPECT_EQ(bound.at("/tenant_id"), "acme");
  EXPECT_EQ(bound.at("/expires_at"), "2099-01-01T00:00:00Z");
  EXPECT_EQ(bound.at("/capabilities"), R"(["read","publish","customer","operate"])");

  const auto publisher = me(make_key("publisher", R"(,"payloads":false)"));
  EXPECT_EQ(publisher.at("/capabilities"), R"(["publish"])");
  EXPECT_EQ(publisher.at("/payloads"), "false");
}

TEST_F(MeCalls, NeedsAKey) {
  EXPECT_EQ(me("").status, 401);
  EXPECT_EQ(me("wrong").status, 401);
}

}  // namespace
}  // namespace postrider::api
