#include "postrider/registry/audit.hpp"

#include "postrider/registry/pgtest_fixture.hpp"
#include "postrider/registry/secrets.hpp"

namespace postrider::registry {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct Audit : RegistryTest {
  Audit() {
    caller.kind = ActorKind::key;
    caller.id = "key_1";
    caller.address = "192.0.2.7";
    caller.request_id = "req_1";
    make_tenant("acme");
  }

  std::vector<AuditRecord> records(AuditFilter filter = {}) {
    return run(list_audit(link, std::move(filter)));
  }
  std::vector<std::string> actions(AuditFilter filter = {}) {
    std::vector<std::string> found;
    for (const auto& record : records(std::move(filter))) found.push_back(record.action);
    return found;
  }
  AuditRecord newest() { return records().front(); }
};

TEST_F(Audit, SaysWhoDidWhatFromWhere) {
  const AuditRecord record = newest();
  EXPECT_EQ(record.actor_kind, "key");
  EXPECT_EQ(record.actor, "key_1");
  EXPECT_EQ(record.action, "tenant.create");
  EXPECT_EQ(record.tenant, "acme");
  EXPECT_EQ(record.object, "acme");
  EXPECT_EQ(record.address, "192.0.2.7");
  EXPECT_EQ(record.request_id, "req_1");
  EXPECT_FALSE(record.before);
  EXPECT_THAT(*record.after, HasSubstr(R"("status": "active")"));
}

TEST_F(Audit, OfAChangeKeepsOnlyWhatDiffers) {
  TenantEdit edit = [](TenantSettings& settings) {
    settings.name = "Acme";
    return true;
  };
  ASSERT_TRUE(run(change_tenant(link, context, caller, "acme", std::move(edit))).ok());
  EXPECT_EQ(newest().before, R"({"name": null})");
  EXPECT_EQ(newest().after, R"({"name": "Acme"})");
}

TEST_F(Audit, AChangeThatChangesNothingIsNone) {
  TenantEdit edit = [](TenantSettings&) { return true; };
  ASSERT_TRUE(run(change_tenant(link, context, caller, "acme", std::move(edit))).ok());
  EXPECT_THAT(actions(), ElementsAre("tenant.create"));
}

TEST_F(Audit, EveryCallThatChangesSomethingIsThere) {
  const auto created = make_endpoint("acme");
  const EndpointRef ref{"acme", created.endpoint.public_id};
  EndpointEdit edit;
  edit.apply = [](EndpointDraft& draft) {
    draft.settings.url = "https://hooks.example.com/other";
    return true;
  };
  ASSERT_TRUE(run(change_endpoint(link, context, caller, ref, std::move(edit))).ok());
  for (const auto status :
       {model::EndpointStatus::paused, model::EndpointStatus::disabled, model::EndpointStatus::active})
    ASSERT_TRUE(run(change_status(link, caller, ref, {status, "because"})).ok());
  ASSERT_TRUE(run(replace_subscriptions(link, caller, ref, {{"a", true, {}}})).ok());
  ASSERT_TRUE(run(change_subscription(link, caller, ref, "a", [](Subscription& subscription) {
                subscription.enabled = false;
                return true;
              })).ok());
  ASSERT_TRUE(run(rotate_secret(link, context, caller, ref, {})).ok());
  const auto secrets = run(list_secrets(link, context, ref));
  ASSERT_FALSE(run(delete_secret(link, caller, ref, secrets->back().id)));
  ASSERT_TRUE(run(delete_endpoint(link, caller, ref)).ok());
  ASSERT_TRUE(run(pause_tenant(link, caller, "acme", "incident")).ok());
  ASSERT_TRUE(run(resume_tenant(link, caller, "acme", {})).ok());
  ASSERT_FALSE(run(delete_tenant(link, caller, "acme")));
  EXPECT_THAT(actions(),
              ElementsAre("tenant.delete", "tenant.resume", "tenant.pause", "endpoint.delete",
                          "secret.delete", "secret.rotate", "subscriptions.update", "subscriptions.update",
                          "endpoint.resume", "endpoint.disable", "endpoint.pause", "endpoint.update",
                          "endpoint.create", "tenant.create"));
  EXPECT_EQ(sql("select string_agg(distinct reason, ',' order by reason) from postrider.audit"),
            "because,incident");
  EXPECT_EQ(sql("select after from postrider.audit where action = 'endpoint.update'"),
            R"({"url": "https://hooks.example.com/other"})");
}

TEST_F(Audit, MasksSecretsAndHeaderValuesButShowsThatTheyChanged) {
  NewEndpoint wanted = new_endpoint("acme");
  wanted.draft.headers = CustomHeaders{{"x-token", "header-value-1"}};
  const auto created = make_endpoint(std::move(wanted));
  const EndpointRef ref{"acme", created.endpoint.public_id};
  EndpointEdit edit;
  edit.apply = [](EndpointDraft& draft) {
    draft.headers = CustomHeaders{{"x-token", "header-value-2"}};
    return true;
  };
  ASSERT_TRUE(run(change_endpoint(link, context, caller, ref, std::move(edit))).ok());
  EXPECT_EQ(newest().before, R"({"headers": {"x-token": "***"}})");
  EXPECT_EQ(newest().after, R"({"headers": {"x-token": "***"}})");
  const auto rotated = run(rotate_secret(link, context, caller, ref, {}));
  const std::string everything = sql("select string_agg(audit::text, ' ') from postrider.audit");
  EXPECT_THAT(everything, Not(HasSubstr("header-value")));
  EXPECT_THAT(everything, Not(HasSubstr(created.secret)));
  EXPECT_THAT(everything, Not(HasSubstr(rotated->text)));
}

TEST_F(Audit, IsWrittenOnlyIfTheChangeIs) {
  EXPECT_FALSE(run(create_tenant(link, context, caller, "acme", {})).ok());
  EXPECT_FALSE(run(delete_endpoint(link, caller, {"acme", "nothing"})).ok());
  EXPECT_THAT(actions(), ElementsAre("tenant.create"));
}

TEST_F(Audit, IsFilteredByEveryField) {
  make_tenant("other");
  caller.id = "key_2";
  const auto created = make_endpoint("other");
  EXPECT_THAT(actions({.tenant = "acme"}), ElementsAre("tenant.create"));
  EXPECT_THAT(actions({.tenant = "other"}), ElementsAre("endpoint.create", "tenant.create"));
  EXPECT_THAT(actions({.actor = "key_2"}), ElementsAre("endpoint.create"));
  EXPECT_THAT(actions({.action = "endpoint.create"}), ElementsAre("endpoint.create"));
  EXPECT_THAT(actions({.object = created.endpoint.public_id}), ElementsAre("endpoint.create"));
  const base::Timestamp middle = records()[1].at;  // of the tenant `other`
  EXPECT_THAT(actions({.since = middle}), ElementsAre("endpoint.create", "tenant.create"));
  EXPECT_THAT(actions({.until = middle}), ElementsAre("tenant.create"));
}

TEST_F(Audit, PagesMeetWithoutGapOrOverlapAlsoWithinOneMoment) {
  sql("insert into postrider.audit (at, actor_kind, actor, action, object) "
      "select '2026-01-01', 'system', 'system', 'x.' || n, 'o' from generate_series(1, 7) n");
  std::vector<std::string> seen;
  AuditFilter filter{.actor = "system", .limit = 3};
  for (auto page = records(filter); !page.empty(); page = records(filter)) {
    for (const auto& record : page) seen.push_back(record.action);
    filter.before_at = page.back().at;
    filter.before_id = page.back().id;
  }
  EXPECT_THAT(seen, ElementsAre("x.7", "x.6", "x.5", "x.4", "x.3", "x.2", "x.1"));
}

TEST_F(Audit, RevisionsCountWhatPeopleChangeAndIfMatchHoldsToThem) {
  const auto created = make_endpoint("acme");
  const EndpointRef ref{"acme", created.endpoint.public_id};
  EXPECT_EQ(created.endpoint.revision, 1);
  sql("update postrider.endpoint set failing_since = now(), breaker = 'open'");  // seen, not chosen
  caller.if_match = {.revisions = {1}, .is_set = true};
  const auto paused = run(change_status(link, caller, ref, {model::EndpointStatus::paused, {}}));
  ASSERT_TRUE(paused.ok());
  EXPECT_EQ(paused->revision, 2);
  EXPECT_EQ(run(change_status(link, caller, ref, {model::EndpointStatus::active, {}})).error().kind,
            RejectionKind::changed_meanwhile);
  EXPECT_EQ(run(replace_subscriptions(link, caller, ref, {{"a", true, {}}})).error().kind,
            RejectionKind::changed_meanwhile);
  EXPECT_EQ(run(delete_endpoint(link, caller, ref)).error().kind, RejectionKind::changed_meanwhile);
  caller.if_match.revisions = {2, 7};
  ASSERT_TRUE(run(replace_subscriptions(link, caller, ref, {{"a", true, {}}})).ok());
  EXPECT_EQ(run(find_endpoint(link, ref))->revision, 3);
  EXPECT_EQ(run(pause_tenant(link, caller, "acme", {})).error().kind, RejectionKind::changed_meanwhile);
  caller.if_match = {.must_exist = true, .is_set = true};
  EXPECT_EQ(run(pause_tenant(link, caller, "acme", {}))->revision, 2);
}

}  // namespace
}  // namespace postrider::registry
