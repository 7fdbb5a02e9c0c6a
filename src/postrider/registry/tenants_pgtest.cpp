#include "postrider/registry/tenants.hpp"

#include "postrider/registry/control_log.hpp"
#include "postrider/registry/pgtest_fixture.hpp"
#include "postrider/registry/tenant_cache.hpp"

namespace postrider::registry {
namespace {

using testing::ElementsAre;

struct Tenants : RegistryTest {
  std::vector<std::string> listed(std::string after, int limit) {
    std::vector<std::string> ids_of_page;
    for (const auto& tenant : run(list_tenants(link, std::move(after), limit)))
      ids_of_page.push_back(tenant.id);
    return ids_of_page;
  }
};

TEST_F(Tenants, KeepWhatTheyWereGiven) {
  TenantSettings settings;
  settings.name = "Acme";
  settings.max_in_flight = 7;
  settings.rate_per_second = 0.5;
  settings.metadata = R"({"plan": "gold"})";
  ASSERT_TRUE(run(create_tenant(link, context, caller, "acme", settings)).ok());
  const auto tenant = run(find_tenant(link, "acme"));
  ASSERT_TRUE(tenant);
  EXPECT_EQ(tenant->settings, settings);
  EXPECT_EQ(tenant->status, model::TenantStatus::active);
}

TEST_F(Tenants, AreNotMadeTwiceNorAfterDeletion) {
  make_tenant("acme");
  EXPECT_EQ(run(create_tenant(link, context, caller, "acme", {})).error().kind, RejectionKind::tenant_exists);
  EXPECT_FALSE(run(delete_tenant(link, caller, "acme")));
  EXPECT_EQ(run(create_tenant(link, context, caller, "acme", {})).error().kind,
            RejectionKind::tenant_id_used);
  EXPECT_EQ(run(create_tenant(link, context, caller, "postrider", {})).error().kind,
            RejectionKind::reserved_tenant);
  EXPECT_FALSE(run(find_tenant(link, "acme")));
}

TEST_F(Tenants, AreListedInPagesWithoutDeletedOnes) {
  for (const char* id : {"c", "a", "b", "B", "d"}) make_tenant(id);
  EXPECT_FALSE(run(delete_tenant(link, caller, "b")));
  EXPECT_THAT(listed("", 3), ElementsAre("B", "a", "c"));
  EXPECT_THAT(listed("c", 3), ElementsAre("d", "postrider"));
}

TEST_F(Tenants, PausingOpensOneSpanAndResumingClosesIt) {
  make_tenant("acme");
  const auto first = run(pause_tenant(link, caller, "acme", "incident"));
  ASSERT_TRUE(first.ok());
  const auto again = run(pause_tenant(link, caller, "acme", "another"));
  EXPECT_EQ(again->status_reason, "another");
  EXPECT_EQ(again->status_since, first->status_since);
  EXPECT_EQ(sql("select count(*), count(until) from postrider.pause_span"), "1|0");
  EXPECT_EQ(run(resume_tenant(link, caller, "acme", {}))->status, model::TenantStatus::active);
  EXPECT_EQ(sql("select count(*), count(until) from postrider.pause_span"), "1|1");
}

TEST_F(Tenants, ADeletedOneTakesItsEndpointsSecretsAndKeysWithIt) {
  make_tenant("acme");
  make_tenant("other");
  const auto created = make_endpoint("acme");
  make_endpoint("other");
  sql("insert into postrider.api_key (id, hash, role, tenant_id) values (gen_random_uuid(), 'x', 'reader', "
      "'acme')");
  EXPECT_FALSE(run(delete_tenant(link, caller, "acme")));
  EXPECT_EQ(counts("acme"), "0|0");
  EXPECT_EQ(counts("other"), "1|0");
  EXPECT_EQ(sql("select count(*) from postrider.endpoint where status <> 'deleted'"), "1");
  EXPECT_EQ(sql("select count(*) from postrider.endpoint_secret"), "1");
  EXPECT_EQ(sql("select count(*) from postrider.subscription"), "1");
  EXPECT_EQ(sql("select count(*) from postrider.api_key where revoked_at is null"), "0");
  EXPECT_EQ(run(find_endpoint(link, {"acme", created.endpoint.public_id})).error().kind,
            RejectionKind::unknown_endpoint);
  EXPECT_EQ(run(delete_tenant(link, caller, "acme"))->kind, RejectionKind::unknown_tenant);
}

TEST_F(Tenants, AnAbandonedEditChangesNothing) {
  make_tenant("acme");
  const auto before = run(current_version(link));
  const auto rejected = run(change_tenant(link, context, caller, "acme", [](TenantSettings& settings) {
    settings.name = "never";
    return false;
  }));
  EXPECT_EQ(rejected.error().kind, RejectionKind::abandoned);
  EXPECT_FALSE(run(find_tenant(link, "acme"))->settings.name);
  EXPECT_EQ(run(current_version(link)), before);
}

TEST_F(Tenants, CacheForgetsATenantThatChanged) {
  make_tenant("acme");
  TenantCache cache;
  const auto now = base::BootClock::now();
  EXPECT_FALSE(run(cache.load(link, "nobody")));
  EXPECT_FALSE(cache.find("acme", now));
  EXPECT_TRUE(run(cache.load(link, "acme")));
  EXPECT_TRUE(cache.find("acme", now));
  EXPECT_FALSE(cache.find("acme", now + std::chrono::hours(1)));

  const auto seen = run(current_version(link));
  ASSERT_TRUE(run(change_tenant(link, context, caller, "acme", [](TenantSettings& settings) {
                settings.payload_bytes_max = 100;
                return true;
              })).ok());
  cache.apply(run(read_changes(link, seen)));
  EXPECT_FALSE(cache.find("acme", now));
  EXPECT_EQ(run(cache.load(link, "acme"))->payload_bytes_max, 100);
}

}  // namespace
}  // namespace postrider::registry
