#include "postrider/registry/endpoints.hpp"

#include "postrider/registry/control_log.hpp"
#include "postrider/registry/pgtest_fixture.hpp"

namespace postrider::registry {
namespace {

using model::EndpointStatus;
using model::Ordering;
using testing::ElementsAre;

struct Endpoints : RegistryTest {
  Endpoints() { make_tenant("acme"); }

  EndpointRef ref(const CreatedEndpoint& created) { return {"acme", created.endpoint.public_id}; }

  EndpointResult edit(const EndpointRef& of, base::UniqueFunction<bool(EndpointDraft&)> apply) {
    EndpointEdit edit;
    edit.apply = std::move(apply);
    return run(change_endpoint(link, context, caller, of, std::move(edit)));
  }
  EndpointResult order(const EndpointRef& of, Ordering ordering) {
    return edit(of, [ordering](EndpointDraft& draft) {
      draft.settings.ordering = ordering;
      return true;
    });
  }
  EndpointResult set(const EndpointRef& of, EndpointStatus status) {
    StatusChange change{status, "because"};
    return run(change_status(link, caller, of, std::move(change)));
  }
  std::string open_spans() {
    return sql("select count(*), count(until) from postrider.pause_span where endpoint_id is not null");
  }
};

TEST_F(Endpoints, CarryTheirBucketAndTail) {
  const auto created = make_endpoint("acme");
  const auto& id = created.endpoint.id;
  EXPECT_EQ(created.endpoint.public_id, id.public_id());
  EXPECT_EQ(sql("select bucket, delivery_tail from postrider.endpoint"),
            std::to_string(model::bucket_of(id, support::buckets)) + "|" + model::delivery_tail_of(id));
  EXPECT_THAT(created.endpoint.patterns, ElementsAre("invoice.*"));
  EXPECT_EQ(created.endpoint.health(), "healthy");
}

TEST_F(Endpoints, CountsFollowCreationOrderingAndDeletion) {
  auto strict = new_endpoint("acme");
  strict.draft.settings.ordering = Ordering::strict;
  const auto first = make_endpoint(strict);
  const auto second = make_endpoint("acme");
  EXPECT_EQ(counts("acme"), "2|1");
  EXPECT_EQ(sql("select count(*) from postrider.endpoint_position"), "1");

  ASSERT_TRUE(order(ref(second), Ordering::strict).ok());
  EXPECT_EQ(counts("acme"), "2|2");
  EXPECT_EQ(sql("select count(*) from postrider.endpoint_position"), "2");
  ASSERT_TRUE(order(ref(second), Ordering::strict).ok());
  ASSERT_TRUE(order(ref(second), Ordering::none).ok());
  EXPECT_EQ(counts("acme"), "2|1");

  EXPECT_TRUE(run(delete_endpoint(link, caller, ref(first))).ok());
  EXPECT_EQ(counts("acme"), "1|0");
  EXPECT_EQ(run(delete_endpoint(link, caller, ref(first))).error().kind, RejectionKind::unknown_endpoint);
  EXPECT_EQ(counts("acme"), "1|0");
}

TEST_F(Endpoints, AreLimitedPerTenant) {
  context.endpoints_max = 2;
  make_endpoint("acme");
  make_endpoint("acme");
  EXPECT_EQ(run(create_endpoint(link, context, caller, new_endpoint("acme"))).error().kind,
            RejectionKind::too_many_endpoints);
  sql("update postrider.tenant set endpoints_max = 3");
  make_endpoint("acme");
  EXPECT_EQ(counts("acme"), "3|0");
}

TEST_F(Endpoints, AnOwnIdIsFreeAgainAfterDeletion) {
  auto wanted = new_endpoint("acme");
  wanted.own_id = "orders";
  const auto first = make_endpoint(wanted);
  EXPECT_EQ(run(create_endpoint(link, context, caller, wanted)).error().kind, RejectionKind::endpoint_exists);
  EXPECT_TRUE(run(delete_endpoint(link, caller, {"acme", "orders"})).ok());
  const auto second = make_endpoint(wanted);
  EXPECT_NE(first.endpoint.id, second.endpoint.id);
  EXPECT_EQ(sql("select public_id from postrider.endpoint where status = 'deleted'"),
            first.endpoint.id.public_id());
  wanted.own_id = "ep_mine";
  EXPECT_EQ(run(create_endpoint(link, context, caller, wanted)).error().kind, RejectionKind::reserved_id);
}

TEST_F(Endpoints, OfAnotherTenantAreUnknown) {
  make_tenant("other");
  const auto created = make_endpoint("acme");
  const EndpointRef foreign{"other", created.endpoint.public_id};
  EXPECT_EQ(run(find_endpoint(link, foreign)).error().kind, RejectionKind::unknown_endpoint);
  EXPECT_EQ(order(foreign, Ordering::strict).error().kind, RejectionKind::unknown_endpoint);
  EXPECT_EQ(set(foreign, EndpointStatus::paused).error().kind, RejectionKind::unknown_endpoint);
  EXPECT_EQ(run(delete_endpoint(link, caller, foreign)).error().kind, RejectionKind::unknown_endpoint);
}

TEST_F(Endpoints, PausingWhatPostriderPausedTakesThePauseOver) {
  const auto of = ref(make_endpoint("acme"));
  const auto first = set(of, EndpointStatus::paused);
  sql("update postrider.endpoint set status_by = 'postrider', status_reason = 'rejected'");
  const auto again = set(of, EndpointStatus::paused);
  EXPECT_EQ(again->status_by, model::Actor::operator_);
  EXPECT_EQ(again->status_reason, "because");
  EXPECT_EQ(again->status_since, first->status_since);
  EXPECT_EQ(open_spans(), "1|0");
}

TEST_F(Endpoints, PauseDisableAndResumeKeepTheSpans) {
  const auto of = ref(make_endpoint("acme"));
  EXPECT_EQ(set(of, EndpointStatus::paused)->status_reason, "because");
  ASSERT_TRUE(set(of, EndpointStatus::paused).ok());
  EXPECT_EQ(open_spans(), "1|0");
  ASSERT_TRUE(set(of, EndpointStatus::disabled).ok());
  EXPECT_EQ(open_spans(), "1|1");
  EXPECT_EQ(set(of, EndpointStatus::paused).error().kind, RejectionKind::endpoint_disabled);

  sql("update postrider.endpoint set breaker = 'open', failing_since = now()");
  const auto resumed = set(of, EndpointStatus::active);
  EXPECT_FALSE(resumed->is_breaker_open);
  EXPECT_EQ(resumed->health(), "healthy");
  EXPECT_EQ(open_spans(), "1|1");
}

TEST_F(Endpoints, AreUnhealthyAfterTenFailedAttemptsAndHalfOfFiveDays) {
  const auto of = ref(make_endpoint("acme"));
  const auto attempts = [this](int from, int to) {
    sql("insert into postrider.attempt (delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, "
        "outcome, "
        "started_at, total_us, node_id, created_at) select overlay(postrider.id_floor(now())::text placing "
        "lpad(n::text, 4, '0') from 33)::uuid, 1, bucket, id, id, tenant_id, 'retrying', now() - interval '1 "
        "hour', 1, "
        "id, now() from postrider.endpoint, generate_series(" +
        std::to_string(from) + ", " + std::to_string(to) + ") as n");
  };
  sql("update postrider.endpoint set failing_since = now() - interval '59 hours'");
  attempts(1, 10);
  EXPECT_EQ(run(find_endpoint(link, of))->health(), "failing") << "not long enough";
  sql("update postrider.endpoint set failing_since = now() - interval '61 hours'");
  EXPECT_EQ(run(find_endpoint(link, of))->health(), "unhealthy");
  EXPECT_EQ(sql("select health from postrider.webhook_endpoints"), "unhealthy");
  sql("delete from postrider.attempt where delivery_id = (select min(delivery_id::text)::uuid from "
      "postrider.attempt)");
  EXPECT_EQ(run(find_endpoint(link, of))->health(), "failing") << "not tried often enough";
  EXPECT_EQ(sql("select health from postrider.webhook_endpoints"), "failing");
}

TEST_F(Endpoints, AnotherUrlClosesTheBreaker) {
  const auto of = ref(make_endpoint("acme"));
  sql("update postrider.endpoint set breaker = 'open', failing_since = now() - interval '3 days'");
  EXPECT_EQ(run(find_endpoint(link, of))->health(), "failing") << "it was hardly ever tried";
  const auto changed = edit(of, [](EndpointDraft& draft) {
    draft.settings.url = "https://other.example.com/";
    return true;
  });
  EXPECT_FALSE(changed->is_breaker_open);
  EXPECT_EQ(changed->health(), "healthy");
}

TEST_F(Endpoints, PatternsThatStayKeepTheirFlags) {
  const auto of = ref(make_endpoint("acme"));
  Subscriptions wanted{{"a", false, std::vector<std::string>{"1", "2"}}, {"b", true, {}}};
  ASSERT_TRUE(run(replace_subscriptions(link, caller, of, wanted)).ok());
  EXPECT_EQ(*run(find_subscriptions(link, of)), wanted);
  ASSERT_TRUE(edit(of, [](EndpointDraft& draft) {
                draft.patterns = std::vector<std::string>{"c", "a"};
                return true;
              }).ok());
  const Subscriptions now{{"a", false, std::vector<std::string>{"1", "2"}}, {"c", true, {}}};
  EXPECT_EQ(*run(find_subscriptions(link, of)), now);
}

TEST_F(Endpoints, AreFoundByTypeStatusAndUrl) {
  const auto first = make_endpoint("acme");
  auto wanted = new_endpoint("acme");
  wanted.draft.settings.url = "https://elsewhere.example.org/x";
  wanted.draft.patterns = std::vector<std::string>{"*"};
  const auto second = make_endpoint(wanted);
  ASSERT_TRUE(set(ref(second), EndpointStatus::paused).ok());
  const auto found = [&](auto narrow) {
    EndpointFilter filter;
    filter.tenant = "acme";
    narrow(filter);
    std::vector<std::string> public_ids;
    const auto listed = run(list_endpoints(link, filter));
    for (const auto& endpoint : *listed) public_ids.push_back(endpoint.public_id);
    return public_ids;
  };
  const auto& one = first.endpoint.public_id;
  const auto& two = second.endpoint.public_id;
  EXPECT_THAT(found([](auto&) {}), ElementsAre(one, two));
  EXPECT_THAT(found([](auto& filter) { filter.limit = 1; }), ElementsAre(one));
  EXPECT_THAT(found([&](auto& filter) { filter.after = first.endpoint.id; }), ElementsAre(two));
  EXPECT_THAT(found([](auto& filter) { filter.event_type = "invoice.paid"; }), ElementsAre(one, two));
  EXPECT_THAT(found([](auto& filter) { filter.event_type = "invoice"; }), ElementsAre(two));
  EXPECT_THAT(found([](auto& filter) { filter.status = EndpointStatus::active; }), ElementsAre(one));
  EXPECT_THAT(found([](auto& filter) { filter.url = "elsewhere"; }), ElementsAre(two));
  EndpointFilter nobody;
  nobody.tenant = "nobody";
  EXPECT_EQ(run(list_endpoints(link, nobody)).error().kind, RejectionKind::unknown_tenant);
}

TEST_F(Endpoints, ShowWhatIsPending) {
  const auto created = make_endpoint("acme");
  sql("insert into postrider.queue (bucket, id, event_id, endpoint_id, tenant_id, retry, due_at, created_at) "
      "select " +
      std::to_string(created.endpoint.bucket) + ", gen_random_uuid(), gen_random_uuid(), '" +
      created.endpoint.id.uuid.text() +
      "', 'acme', n % 2 = 0, now(), '2026-01-01T00:00:00Z'::timestamptz + n * interval '1 second' "
      "from generate_series(1, 12) n");
  const auto endpoint = run(find_endpoint(link, ref(created)));
  EXPECT_EQ(endpoint->pending, 12);
  EXPECT_FALSE(endpoint->is_pending_capped);
  EXPECT_EQ(base::to_rfc3339(*endpoint->oldest_pending_at), "2026-01-01T00:00:01Z");
}

TEST_F(Endpoints, EveryChangeIsInTheControlLogInOrder) {
  const auto start = run(current_version(link));
  const auto created = make_endpoint("acme");
  const auto of = ref(created);
  ASSERT_TRUE(set(of, EndpointStatus::paused).ok());
  ASSERT_TRUE(run(replace_subscriptions(link, caller, of, {{"a", true, {}}})).ok());
  ASSERT_TRUE(run(pause_tenant(link, caller, "acme", {})).ok());
  EXPECT_TRUE(run(delete_endpoint(link, caller, of)).ok());
  const auto changes = run(read_changes(link, start));
  ASSERT_EQ(changes.size(), 5u);
  const ChangeKind kinds[] = {ChangeKind::endpoint, ChangeKind::endpoint, ChangeKind::subscriptions,
                              ChangeKind::tenant, ChangeKind::endpoint};
  for (size_t i = 0; i < changes.size(); ++i) {
    EXPECT_EQ(changes[i].version, start + static_cast<int64_t>(i) + 1);
    EXPECT_EQ(changes[i].kind, kinds[i]);
    EXPECT_EQ(changes[i].tenant_id, "acme");
    if (kinds[i] != ChangeKind::tenant) {
      EXPECT_EQ(changes[i].endpoint_id, created.endpoint.id);
    }
  }
  EXPECT_EQ(run(current_version(link)), changes.back().version);
}

}  // namespace
}  // namespace postrider::registry
