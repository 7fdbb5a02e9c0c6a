#include "postrider/api/pgtest_fixture.hpp"

namespace postrider::api {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct EndpointCalls : ApiTest {
  explicit EndpointCalls(http::GuardPolicy guard = {}, bool has_resolver = false)
      : ApiTest(std::move(guard), has_resolver), endpoints(make_acme()) {}

  const std::string endpoints;
};

TEST_F(EndpointCalls, ASecretIsShownOnceAndHeadersAreMasked) {
  const auto made =
      post(endpoints, R"({"url": "https://hooks.example.com/in", "event_types": ["invoice.*", "*"],
      "headers": {"Authorization": "Bearer token-1"}})");
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_THAT(made.at("/secret"), StartsWith("whsec_"));
  EXPECT_THAT(made.at("/id"), StartsWith("ep_"));
  EXPECT_EQ(made.header("location"), endpoints + "/" + made.at("/id"));
  EXPECT_EQ(made.header("cache-control"), "no-store");
  EXPECT_EQ(made.at("/max_attempts"), "8");
  EXPECT_EQ(made.at("/timeout_ms"), "10000");
  EXPECT_EQ(made.at("/give_up_seconds"), "259200");
  EXPECT_EQ(made.at("/ordering"), "none");
  EXPECT_EQ(made.at("/event_types"), R"(["*","invoice.*"])");

  const auto shown = get(endpoints + "/" + made.at("/id"));
  EXPECT_EQ(shown.status, 200);
  EXPECT_EQ(shown.at("/secret"), "(nothing)");
  EXPECT_EQ(shown.at("/headers/Authorization"), "***");
  EXPECT_THAT(shown.body, Not(HasSubstr("token-1")));
  EXPECT_EQ(shown.at("/health"), "healthy");
  EXPECT_EQ(shown.at("/breaker"), "closed");
  EXPECT_EQ(shown.at("/pending"), "0");
  EXPECT_EQ(shown.at("/status"), "active");
}

TEST_F(EndpointCalls, AnEd25519EndpointAlsoShowsItsPublicKey) {
  const auto made = post(
      endpoints, R"({"url": "https://a.example", "event_types": ["a"], "signature": "standard-ed25519"})");
  EXPECT_THAT(made.at("/secret"), StartsWith("whsk_"));
  EXPECT_THAT(made.at("/public_key"), StartsWith("whpk_"));
}

TEST_F(EndpointCalls, PutMakesTheEndpointOnceAndThenReplacesIt) {
  const std::string target = endpoints + "/orders";
  const std::string document = R"({"url": "https://a.example/x", "event_types": ["a", "b"], "max_attempts": 3,
      "retry_schedule": [5, 10], "headers": {"x-a": "1"}, "metadata": {"b": 1, "a": 0.5}})";
  const auto made = put(target, document);
  EXPECT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(made.at("/id"), "orders");
  const auto version = database.sql("select version from postrider.registry_version");
  const auto again = put(target, document);
  EXPECT_EQ(again.status, 200) << again.body;
  EXPECT_EQ(again.at("/secret"), "(nothing)");
  EXPECT_EQ(database.sql("select version from postrider.registry_version"), version) << "nothing changed";

  const auto replaced = put(target, R"({"url": "https://a.example/y", "event_types": ["b"]})");
  EXPECT_EQ(replaced.status, 200);
  EXPECT_EQ(replaced.at("/max_attempts"), "8");
  EXPECT_EQ(replaced.at("/retry_schedule"), "null");
  EXPECT_EQ(replaced.at("/headers"), "{}");
  EXPECT_EQ(replaced.at("/event_types"), R"(["b"])");
  EXPECT_EQ(database.sql("select count(*) from postrider.endpoint"), "1");

  EXPECT_EQ(put(endpoints + "/ep_mine", document).status, 409);
  EXPECT_EQ(put(endpoints + "/a%20b", document).pointers(), "endpoint ");
  EXPECT_EQ(put("/v1/tenants/nobody/endpoints/x", document).status, 404);
}

TEST_F(EndpointCalls, PutTakesTheCurrentSecretButNoOther) {
  const std::string start = R"({"url": "https://a.example/x", "event_types": ["a"], "secret": ")";
  const std::string first = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  EXPECT_EQ(put(endpoints + "/o", start + first + "\"}").at("/secret"), first);
  EXPECT_EQ(put(endpoints + "/o", start + first + "\"}").status, 200);
  EXPECT_EQ(put(endpoints + "/o", start + "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}").pointers(),
            "/secret ");
}

TEST_F(EndpointCalls, PatchChangesWhatIsGivenAndNullResets) {
  const auto target = make_endpoint(R"(, "max_attempts": 3, "description": "d", "headers": {"x-a": "1"})");
  const auto changed =
      patch(target, R"({"url": "https://b.example/", "ordering": "strict", "rate_per_second": 5})");
  EXPECT_EQ(changed.status, 200) << changed.body;
  EXPECT_EQ(changed.at("/url"), "https://b.example/");
  EXPECT_EQ(changed.at("/max_attempts"), "3");
  EXPECT_EQ(changed.at("/headers/x-a"), "***");
  EXPECT_EQ(database.sql("select endpoint_count, strict_count from postrider.tenant where id = 'acme'"),
            "1|1");

  const auto reset = patch(target, R"({"max_attempts": null, "description": null, "headers": null,
      "ordering": null, "rate_per_second": null, "retry_schedule": {"base_seconds": 5}})");
  EXPECT_EQ(reset.at("/max_attempts"), "8");
  EXPECT_EQ(reset.at("/description"), "null");
  EXPECT_EQ(reset.at("/headers"), "{}");
  EXPECT_EQ(reset.at("/ordering"), "none");
  EXPECT_EQ(reset.at("/retry_schedule/base_seconds"), "5");
  EXPECT_EQ(database.sql("select endpoint_count, strict_count from postrider.tenant where id = 'acme'"),
            "1|0");

  EXPECT_EQ(patch(target, R"({"url": null})").pointers(), "/url ");
  EXPECT_EQ(patch(target, R"({"event_types": null})").pointers(), "/event_types ");
  EXPECT_EQ(patch(target, R"({"secret": "whsec_x"})").pointers(), "/secret ");
  EXPECT_EQ(patch(target, R"({"signature": "standard-ed25519"})").pointers(), "/secret ");
  EXPECT_EQ(patch(endpoints + "/nothing", "{}").at("/detail"), "There is no endpoint `nothing`.");
  EXPECT_EQ(get("/v1/tenants/nobody").at("/detail"), "There is no tenant `nobody`.");
  EXPECT_EQ(get("/v1/deliveries?endpoint=ep_" + std::string(32, '0')).at("/detail"),
            "There is no such endpoint.");
}

TEST_F(EndpointCalls, EveryBadFieldIsPointedAt) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("url": 1)", "/url "},
      {R"("url": "")", "/url "},
      {R"("url": "ftp://example.com")", "/url "},
      {R"("url": "https://user@example.com/")", "/url "},
      {R"("url": "https://example.com:22/")", "/url "},
      {R"("url": "http://example.com/")", "/url "},
      {R"("url": "https://127.0.0.1/")", "/url "},
      {R"("url": "https://[::1]/")", "/url "},
      {R"("url": "https://0x7f.1/")", "/url "},
      {R"("url": "https://169.254.169.254/latest")", "/url "},
      {R"("url": "https://localhost/")", "/url "},
      {R"("event_types": [])", "/event_types "},
      {R"("event_types": "a")", "/event_types "},
      {R"("event_types": ["a", "b c", 3])", "/event_types/1 /event_types/2 "},
      {R"("description": 1)", "/description "},
      {R"("max_attempts": 0)", "/max_attempts "},
      {R"("max_attempts": 101)", "/max_attempts "},
      {R"("timeout_ms": 99)", "/timeout_ms "},
      {R"("give_up_seconds": 0)", "/give_up_seconds "},
      {R"("max_in_flight": 0)", "/max_in_flight "},
      {R"("rate_per_second": 0)", "/rate_per_second "},
      {R"("ordering": "fifo")", "/ordering "},
      {R"("retry_schedule": [])", "/retry_schedule "},
      {R"("retry_schedule": [1, -1])", "/retry_schedule "},
      {R"("retry_schedule": {"factor": 2})", "/retry_schedule "},
      {R"("on_rejected": "explode")", "/on_rejected "},
      {R"("signature": "md5")", "/signature "},
      {R"("secret": "whsec_short")", "/secret "},
      {R"("signature": "sha256", "secret": "short")", "/secret "},
      {R"("headers": [])", "/headers "},
      {R"("headers": {"Host": "x", "x-a": 1, "Connection": "close", "a b": "1"})",
       "/headers/Host /headers/x-a /headers/Connection /headers/a b "},
      {R"("headers": {"webhook-id": "1", "X-Webhook-Signature": "1", "Transfer-Encoding": "chunked"})",
       "/headers/webhook-id /headers/X-Webhook-Signature /headers/Transfer-Encoding "},
      {R"("headers": {"x-a": "1", "X-A": "2", "x-b": "a\r\nb: c", "x-c": " 1", "x-d": "***"})",
       "/headers/X-A /headers/x-b /headers/x-c /headers/x-d "},
      {R"("metadata": "x")", "/metadata "},
      {R"("id": "mine")", "/id "},
      {R"("status": "paused")", "/status "},
  };
  for (const auto& [field, pointers] : cases) {
    std::string document = "{" + std::string(field);
    if (document.find("\"url\"") == std::string::npos) document += R"(, "url": "https://example.com/")";
    if (document.find("\"event_types\"") == std::string::npos) document += R"(, "event_types": ["a"])";
    const auto response = post(endpoints, document + "}");
    EXPECT_EQ(response.status, 422) << field;
    EXPECT_EQ(response.pointers(), pointers) << field;
  }
  EXPECT_EQ(post(endpoints, "{}").pointers(), "/url /event_types ");
  EXPECT_EQ(database.sql("select count(*) from postrider.endpoint"), "0");
}

TEST_F(EndpointCalls, LimitsHold) {
  const std::string start = R"({"url": "https://example.com/", "event_types": ["a"], )";
  std::string headers, patterns;
  for (int i = 0; i < 21; ++i) headers += "\"x-" + std::to_string(i) + "\": \"1\",";
  headers.back() = ' ';
  EXPECT_EQ(post(endpoints, start + "\"headers\": {" + headers + "}}").pointers(), "/headers ");
  EXPECT_EQ(post(endpoints, start + "\"headers\": {\"x-a\": \"" + std::string(4096, 'v') + "\"}}").pointers(),
            "/headers/x-a ");
  for (int i = 0; i < 101; ++i) patterns += "\"t" + std::to_string(i) + "\",";
  patterns.back() = ' ';
  EXPECT_EQ(
      post(endpoints, R"({"url": "https://example.com/", "event_types": [)" + patterns + "]}").pointers(),
      "/event_types ");

  patch("/v1/tenants/acme", R"({"endpoints_max": 1})");
  make_endpoint();
  const auto rejected = post(endpoints, R"({"url": "https://example.com/", "event_types": ["a"]})");
  EXPECT_EQ(rejected.status, 409);
  EXPECT_EQ(rejected.at("/type"), "urn:postrider:problem:too-many-endpoints");
  EXPECT_THAT(rejected.at("/detail"), testing::HasSubstr("has 1 endpoints, and its limit is 1"));
}

TEST_F(EndpointCalls, StatusCallsDoWhatTheySay) {
  const auto target = make_endpoint();
  EXPECT_EQ(post(target + "/pause", R"({"reason": "maintenance"})").at("/status_reason"), "maintenance");
  EXPECT_EQ(get(target).at("/status"), "paused");
  EXPECT_EQ(post(target + "/resume").at("/status"), "active");
  EXPECT_EQ(post(target + "/disable").at("/status"), "disabled");
  EXPECT_EQ(post(target + "/pause").at("/type"), "urn:postrider:problem:endpoint-disabled");
  EXPECT_EQ(post(target + "/resume").at("/status"), "active");
  EXPECT_EQ(remove(target).status, 200);
  for (const char* verb : {"/pause", "/resume", "/disable"})
    EXPECT_EQ(post(target + verb).status, 404) << verb;
  EXPECT_EQ(get(target).status, 404);
  EXPECT_EQ(remove(target).status, 404);
}

TEST_F(EndpointCalls, ListsFilterAndComeInPages) {
  std::vector<std::string> made;
  for (int i = 0; i < 3; ++i) made.push_back(make_endpoint());
  post(made[1] + "/pause");
  const auto first = get(endpoints + "?limit=2");
  EXPECT_EQ(endpoints + "/" + first.at("/data/1/id"), made[1]);
  const auto second = get(endpoints + "?limit=2&cursor=" + first.at("/next_cursor"));
  EXPECT_EQ(endpoints + "/" + second.at("/data/0/id"), made[2]);
  EXPECT_EQ(second.at("/next_cursor"), "(nothing)");
  EXPECT_EQ(endpoints + "/" + get(endpoints + "?status=paused").at("/data/0/id"), made[1]);
  EXPECT_EQ(get(endpoints + "?event_type=invoice.paid&url=hooks.example").json().at("data").as_array().size(),
            3u);
  EXPECT_EQ(get(endpoints + "?event_type=order.paid").at("/data"), "[]");
  for (const char* bad : {"status=deleted", "event_type=a..b", "cursor=c1_61", "x=y"})
    EXPECT_EQ(get(endpoints + "?" + bad).status, 422) << bad;
  EXPECT_EQ(get("/v1/tenants/nobody/endpoints").status, 404);
  EXPECT_EQ(
      post("/v1/tenants/nobody/endpoints", R"({"url": "https://a.example", "event_types": ["a"]})").status,
      404);
}

TEST_F(EndpointCalls, SubscriptionsCanBePutBackAsTheyWereGot) {
  const auto target = make_endpoint() + "/subscriptions";
  const auto wanted =
      R"({"data":[{"pattern":"a.*","enabled":false,"versions":["1.0","2"]},{"pattern":"b","enabled":true,"versions":null}]})";
  EXPECT_EQ(put(target, wanted).body, wanted);
  EXPECT_EQ(get(target).body, wanted);
  EXPECT_EQ(put(target, get(target).body).body, wanted);
  EXPECT_EQ(patch(target + "/a.*", R"({"enabled": true})").at("/versions"), R"(["1.0","2"])");
  EXPECT_EQ(patch(target + "/a.%2A", R"({"versions": null})").at("/enabled"), "true");
  EXPECT_EQ(patch(target + "/c", R"({"enabled": true})").status, 404);
  EXPECT_EQ(patch(target + "/b", R"({"enabled": 1, "pattern": "x"})").pointers(), "/enabled /pattern ");
  const std::pair<const char*, const char*> cases[] = {
      {R"({})", "/data "},
      {R"({"data": []})", "/data "},
      {R"({"data": [1]})", "/data/0 "},
      {R"({"data": [{"enabled": true}]})", "/data/0/pattern "},
      {R"({"data": [{"pattern": "a"}, {"pattern": "a"}]})", "/data/1/pattern "},
      {R"({"data": [{"pattern": "*.a", "versions": []}]})", "/data/0/versions /data/0/pattern "},
      {R"({"data": [{"pattern": "a", "versions": ["x,y"], "more": 1}]})", "/data/0/versions/0 /data/0/more "},
  };
  for (const auto& [body, pointers] : cases) EXPECT_EQ(put(target, body).pointers(), pointers) << body;
  EXPECT_EQ(get(endpoints + "/nothing/subscriptions").status, 404);
}

TEST_F(EndpointCalls, SecretsRotateWithAnOverlap) {
  const auto target = make_endpoint() + "/secrets";
  const auto rotated = post(target + "/rotate", R"({"overlap_seconds": 60})");
  EXPECT_EQ(rotated.status, 201) << rotated.body;
  const auto listed = get(target);
  EXPECT_EQ(listed.at("/data/0/id"), rotated.at("/id"));
  EXPECT_EQ(listed.at("/data/0/current"), "true");
  EXPECT_EQ(listed.at("/data/1/current"), "false");
  EXPECT_THAT(listed.body, Not(HasSubstr(rotated.at("/secret"))));
  EXPECT_EQ(remove(target + "/" + listed.at("/data/0/id")).status, 409);
  EXPECT_EQ(remove(target + "/" + listed.at("/data/1/id")).status, 204);
  EXPECT_EQ(remove(target + "/" + listed.at("/data/1/id")).status, 404);
  EXPECT_EQ(remove(target + "/nonsense").status, 404);
  EXPECT_EQ(post(target + "/rotate", R"({"overlap_seconds": -1, "x": 1})").pointers(),
            "/overlap_seconds /x ");
  EXPECT_EQ(post(target + "/rotate", R"({"secret": "x"})").pointers(), "/secret ");
  EXPECT_EQ(post(endpoints + "/nothing/secrets/rotate").status, 404);
}

// A network is allowed, so that names of local machines are checked by their addresses.
struct NamesAreLookedUp : EndpointCalls {
  static http::GuardPolicy policy() {
    http::GuardPolicy policy;
    policy.allow_networks.push_back(*http::Network::parse("10.1.2.0/24"));
    return policy;
  }
  NamesAreLookedUp() : EndpointCalls(policy(), true) {}
};

TEST_F(NamesAreLookedUp, ANameWithARejectedAddressIsNotSaved) {
  const auto rejected = post(endpoints, R"({"url": "https://localhost/", "event_types": ["a"]})");
  EXPECT_EQ(rejected.status, 422);
  EXPECT_EQ(rejected.pointers(), "/url ");
  EXPECT_EQ(post(endpoints, R"({"url": "https://10.1.2.3/", "event_types": ["a"]})").status, 201);
}

}  // namespace
}  // namespace postrider::api
