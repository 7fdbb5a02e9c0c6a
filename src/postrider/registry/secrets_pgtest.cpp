#include "postrider/registry/secrets.hpp"

#include <cstdio>
#include <memory>

#include "postrider/base/encoding.hpp"
#include "postrider/registry/endpoint_config.hpp"
#include "postrider/registry/keys.hpp"
#include "postrider/registry/pgtest_fixture.hpp"
#include "postrider/registry/startup.hpp"

namespace postrider::registry {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

struct Secrets : RegistryTest {
  Secrets() { make_tenant("acme"); }

  EndpointRef ref(const CreatedEndpoint& created) { return {"acme", created.endpoint.public_id}; }
  base::Result<RotatedSecret, Rejection> rotate(const EndpointRef& of, Rotation rotation) {
    return run(rotate_secret(link, context, caller, of, std::move(rotation)));
  }
  LoadedEndpoint config(const CreatedEndpoint& created, const crypto::MasterKeys& with) {
    const model::EndpointId wanted[] = {created.endpoint.id};
    auto configs = run(load_endpoint_configs(link, wanted, with));
    EXPECT_EQ(configs.size(), 1u);
    return std::move(configs.front());
  }
};

// Everything in the schema as pg_dump writes it.
std::string dump(const std::string& url) {
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(
      popen(("pg_dump --schema=postrider --data-only '" + url + "'").c_str(), "r"), pclose);
  std::string text;
  char buffer[65536];
  while (const size_t got = fread(buffer, 1, sizeof buffer, pipe.get())) text.append(buffer, got);
  return text;
}

TEST_F(Secrets, AreNowhereInClear) {
  auto wanted = new_endpoint("acme");
  wanted.draft.headers = CustomHeaders{{"authorization", "Bearer hidden-token-123456"}};
  wanted.secret = "whsec_" + base::base64_encode("a secret of thirty-two bytes ok!");
  const auto created = make_endpoint(wanted);
  const auto rotated = rotate(ref(created), {});
  const auto admin_key = run(ensure_admin_key(link, ""));
  ASSERT_TRUE(rotated.ok() && admin_key);

  const std::string text = dump(database.url());
  EXPECT_THAT(text, HasSubstr("https://hooks.example.com/in"));  // the dump has the tables
  for (const std::string& secret : {created.secret, rotated->text}) {
    EXPECT_THAT(text, Not(HasSubstr(secret.substr(6))));
    const auto raw = *base::base64_decode(secret.substr(6));
    EXPECT_THAT(text, Not(HasSubstr(raw)));
    EXPECT_THAT(text, Not(HasSubstr(base::hex_encode(raw))));
    EXPECT_THAT(text, Not(HasSubstr(base::hex_encode(secret))));
  }
  EXPECT_THAT(text, Not(HasSubstr("hidden-token")));
  EXPECT_THAT(text, Not(HasSubstr(base::hex_encode("hidden-token"))));
  EXPECT_THAT(text, Not(HasSubstr(*admin_key)));
}

TEST_F(Secrets, RotationOverlapsAndTheLaneGetsTheCurrentOneFirst) {
  const auto created = make_endpoint("acme");
  const auto rotated = rotate(ref(created), {});
  ASSERT_TRUE(rotated.ok());
  const auto loaded = config(created, keys);
  ASSERT_EQ(loaded.secrets.size(), 2u);
  EXPECT_EQ(loaded.secrets[0].text, rotated->text);
  EXPECT_FALSE(loaded.secrets[0].expires_at);
  EXPECT_EQ(loaded.secrets[1].text, created.secret);
  EXPECT_TRUE(loaded.secrets[1].expires_at);

  Rotation at_once;
  at_once.overlap = seconds(0);
  const auto again = rotate(ref(created), at_once);
  const auto after = config(created, keys);
  ASSERT_EQ(after.secrets.size(), 2u);
  EXPECT_EQ(after.secrets[0].text, again->text);
  EXPECT_EQ(after.secrets[1].text, created.secret);
}

TEST_F(Secrets, OverlapsEndEarlyButTheCurrentOneStays) {
  const auto created = make_endpoint("acme");
  const auto of = ref(created);
  const auto rotated = rotate(of, {});
  const auto listed = run(list_secrets(link, context, of));
  ASSERT_EQ(listed->size(), 2u);
  EXPECT_EQ(listed->at(0).id, rotated->secret.id);
  EXPECT_THAT(*listed->at(0).masked, Not(HasSubstr(rotated->text.substr(12))));
  EXPECT_EQ(run(delete_secret(link, caller, of, rotated->secret.id))->kind, RejectionKind::is_current_secret);
  EXPECT_FALSE(run(delete_secret(link, caller, of, listed->at(1).id)));
  EXPECT_EQ(run(delete_secret(link, caller, of, listed->at(1).id))->kind, RejectionKind::unknown_secret);
  EXPECT_EQ(run(list_secrets(link, context, of))->size(), 1u);
}

TEST_F(Secrets, GivenOnesMustFitAndBeNew) {
  const auto created = make_endpoint("acme");
  Rotation rotation;
  rotation.secret = "short";
  EXPECT_EQ(rotate(ref(created), rotation).error().kind, RejectionKind::secret_invalid);
  rotation.secret = created.secret;
  EXPECT_EQ(rotate(ref(created), rotation).error().kind, RejectionKind::secret_in_use);
  for (size_t i = 1; i < secrets_max; ++i) ASSERT_TRUE(rotate(ref(created), {}).ok());
  EXPECT_EQ(rotate(ref(created), {}).error().kind, RejectionKind::too_many_secrets);
  EXPECT_THAT(rotate(ref(created), {}).error().detail, testing::HasSubstr("already has 5 active secrets"));
}

TEST_F(Secrets, ASchemeThatTheSecretDoesNotFitIsRejected) {
  const auto created = make_endpoint("acme");
  const auto change = [&](crypto::SignatureScheme scheme) {
    EndpointEdit edit;
    edit.apply = [scheme](EndpointDraft& draft) {
      draft.settings.signature = scheme;
      return true;
    };
    return run(change_endpoint(link, context, caller, ref(created), std::move(edit)));
  };
  EXPECT_TRUE(change(crypto::SignatureScheme::hex_v1).ok());
  EXPECT_EQ(change(crypto::SignatureScheme::standard_ed25519).error().kind, RejectionKind::secret_invalid);
}

TEST_F(Secrets, WithoutTheMasterKeyTheEndpointIsUnreadableNotLost) {
  auto wanted = new_endpoint("acme");
  wanted.draft.headers = CustomHeaders{{"x-one", "1"}, {"x-two", "2"}};
  const auto created = make_endpoint(wanted);
  EXPECT_EQ(config(created, keys).header_lines, "x-one: 1\r\nx-two: 2\r\n");
  EXPECT_TRUE(config(created, keys).is_sending());

  const auto others = *crypto::MasterKeys::parse(crypto::MasterKeys::generate());
  const auto loaded = config(created, others);
  EXPECT_TRUE(loaded.unreadable);
  EXPECT_FALSE(loaded.is_sending());
  EXPECT_TRUE(loaded.secrets.empty());
  EXPECT_EQ(loaded.header_lines, "");
}

// A copy of the table, from a backup say, must not bring an old secret back into use.
TEST_F(Secrets, TheBytesOfAnEarlierSecretDoNotOpenInTheRowOfALaterOne) {
  const auto created = make_endpoint("acme");
  const std::string old_bytes = sql("select sealed from postrider.endpoint_secret");
  ASSERT_TRUE(rotate(ref(created), {.overlap = seconds(0), .secret = {}}).ok());
  EXPECT_FALSE(config(created, keys).unreadable);
  sql("update postrider.endpoint_secret set sealed = '" + old_bytes + "'");
  EXPECT_TRUE(config(created, keys).unreadable);
}

TEST_F(Secrets, ConfigurationsOfManyEndpointsComeTogether) {
  std::vector<model::EndpointId> wanted;
  context.endpoints_max = 100;
  for (int i = 0; i < 60; ++i) wanted.push_back(make_endpoint("acme").endpoint.id);
  wanted.push_back(model::EndpointId{ids.next()});
  ASSERT_TRUE(run(pause_tenant(link, caller, "acme", {})).ok());
  const auto configs = run(load_endpoint_configs(link, wanted, keys));
  ASSERT_EQ(configs.size(), 60u);
  for (const auto& config : configs) {
    EXPECT_EQ(config.tenant_status, model::TenantStatus::paused);
    EXPECT_EQ(config.secrets.size(), 1u);
    EXPECT_EQ(config.pause_spans.size(), 1u);
    EXPECT_EQ(config.retry_schedule, "null");
  }
}

TEST_F(Secrets, PausesOfEndpointAndTenantAreMerged) {
  const auto created = make_endpoint("acme");
  const auto span = [&](const std::string& endpoint, const std::string& since, const std::string& until) {
    sql("insert into postrider.pause_span (tenant_id, endpoint_id, since, until) values ('acme', " +
        endpoint + ", now() - interval '" + since + "', now() - interval '" + until + "')");
  };
  const std::string own = "'" + created.endpoint.id.uuid.text() + "'";
  span(own, "10 hours", "8 hours");
  span("null", "9 hours", "7 hours");
  span(own, "2 hours", "1 hour");
  span(own, "40 days", "39 days");  // longer ago than any delivery that has not expired
  const auto loaded = config(created, keys);
  ASSERT_EQ(loaded.pause_spans.size(), 2u);
  const auto now = base::wall_now();
  const auto paused = paused_between(loaded.pause_spans, now - std::chrono::hours(24), now);
  EXPECT_EQ(std::chrono::duration_cast<std::chrono::hours>(paused).count(), 4);
}

// A delivery may be older than give_up_seconds if it was paused, so earlier pauses count, too.
TEST_F(Secrets, PausesThatEndedLongerAgoThanTheDeadlineCountToo) {
  const auto created = make_endpoint("acme");
  sql("insert into postrider.pause_span (tenant_id, since, until) values "
      "('acme', now() - interval '30 days', now() - interval '10 days'), "
      "('acme', now() - interval '9 days', now() - interval '1 day')");
  const auto loaded = config(created, keys);
  EXPECT_EQ(loaded.pause_spans.size(), 2u);
}

TEST_F(Secrets, TimesOfTheBrakeAndOfAHoldStopTheClockLikePauses) {
  const auto created = make_endpoint("acme");
  sql("insert into postrider.brake_span (since, until) values "
      "(now() - interval '5 hours', now() - interval '4 hours')");
  sql("update postrider.endpoint set held_reason = 'no key', held_since = now() - interval '2 hours'");
  const auto loaded = config(created, keys);
  const auto now = base::wall_now();
  const auto paused = paused_between(loaded.pause_spans, now - std::chrono::hours(24), now);
  EXPECT_NEAR(std::chrono::duration<double>(paused).count(), 3 * 3'600.0, 60);
}

TEST_F(Secrets, TheMasterKeyIsCheckedAtStart) {
  run(verify_master_key(link, keys));
  run(verify_master_key(link, keys));
  const std::string old_text = crypto::MasterKeys::generate(), new_text = crypto::MasterKeys::generate();
  const auto other = *crypto::MasterKeys::parse(new_text);
  EXPECT_THROW(run(verify_master_key(link, other)), std::runtime_error);

  sql("delete from postrider.setting where name = 'master_key_check'");
  run(verify_master_key(link, *crypto::MasterKeys::parse(old_text)));
  run(verify_master_key(link, *crypto::MasterKeys::parse(new_text + "," + old_text)));
  run(verify_master_key(link, other));  // the check value moved on to the new key
  EXPECT_EQ(run(read_buckets(link)), support::buckets);
}

TEST_F(Secrets, TheAdminKeyIsMadeOnceOrConfigured) {
  const auto made = run(ensure_admin_key(link, ""));
  ASSERT_TRUE(made);
  EXPECT_FALSE(run(ensure_admin_key(link, "")));
  EXPECT_EQ(run(find_key(link, hash_key(*made)))->principal.role, Role::admin);
  EXPECT_FALSE(run(find_key(link, hash_key("unknown"))));

  const std::string first(32, 'a'), second(32, 'b');
  EXPECT_FALSE(run(ensure_admin_key(link, first)));
  EXPECT_TRUE(run(find_key(link, hash_key(first))));
  EXPECT_FALSE(run(ensure_admin_key(link, second)));
  EXPECT_TRUE(run(find_key(link, hash_key(second))));
  EXPECT_FALSE(run(find_key(link, hash_key(first)))) << "the key configured before stops working";
  EXPECT_FALSE(run(ensure_admin_key(link, first)));
  EXPECT_TRUE(run(find_key(link, hash_key(first))));
  EXPECT_THROW(run(ensure_admin_key(link, "short")), std::runtime_error);
}

}  // namespace
}  // namespace postrider::registry
