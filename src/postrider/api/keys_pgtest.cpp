#include "postrider/api/pgtest_fixture.hpp"

namespace postrider::api {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Keys : ApiTest {
  Keys() {
    make_acme();
    post("/v1/tenants", R"({"id": "other"})");
  }
  Reply as(const std::string& key, std::string method, std::string target, std::string body = "") {
    return server->send({std::move(method), std::move(target), std::move(body), key});
  }
  std::string make(const std::string& document) {
    const auto made = post("/v1/keys", document);
    EXPECT_EQ(made.status, 201) << made.body;
    return made.at("/key");
  }
};

TEST_F(Keys, AreShownOnceAndWork) {
  const auto made = post("/v1/keys", R"({"role": "reader", "description": "support"})");
  EXPECT_EQ(made.status, 201);
  EXPECT_THAT(made.at("/key"), StartsWith("pr_"));
  EXPECT_EQ(made.header("cache-control"), "no-store");
  const std::string path = made.header("location").value_or("");
  EXPECT_EQ(path, "/v1/keys/" + made.at("/id"));
  EXPECT_EQ(as(made.at("/key"), "GET", "/v1/tenants").status, 200);
  const auto shown = get(path);
  EXPECT_EQ(shown.at("/description"), "support");
  EXPECT_THAT(shown.at("/created_by"), StartsWith("key_"));
  EXPECT_THAT(shown.body, Not(HasSubstr("pr_")));
  EXPECT_THAT(get("/v1/keys").body, Not(HasSubstr("pr_")));
  EXPECT_NE(shown.at("/last_used_at"), "null");
}

TEST_F(Keys, StopWhenTheyAreRevoked) {
  const auto made = post("/v1/keys", R"({"role": "reader"})");
  EXPECT_EQ(as(made.at("/key"), "GET", "/v1/tenants").status, 200);
  const std::string path = "/v1/keys/" + made.at("/id");
  EXPECT_EQ(remove(path).status, 204);
  server->forget_cached();  // as the control log does in a node
  EXPECT_EQ(as(made.at("/key"), "GET", "/v1/tenants").status, 401);
  EXPECT_NE(get(path).at("/revoked_at"), "null");
  EXPECT_THAT(get("/v1/keys").body, Not(HasSubstr(made.at("/id"))));
  EXPECT_EQ(remove(path).status, 204);
  EXPECT_EQ(remove("/v1/keys/key_nothing").status, 404);
  EXPECT_EQ(database.sql("select string_agg(action, ',' order by id) from postrider.audit where object = '" +
                         made.at("/id") + "'"),
            "key.create,key.revoke");
  EXPECT_EQ(database.sql("select count(*) from postrider.control_log where kind = 'key'"), "3");
}

TEST_F(Keys, WrongFieldsAreNamed) {
  EXPECT_EQ(post("/v1/keys", R"({})").pointers(), "/role ");
  EXPECT_EQ(post("/v1/keys", R"({"role": "king", "payloads": 1, "x": 1})").pointers(), "/role /payloads /x ");
  EXPECT_EQ(post("/v1/keys", R"({"role": "reader", "expires_at": "2020-01-01T00:00:00Z"})").pointers(),
            "/expires_at ");
  EXPECT_EQ(post("/v1/keys", R"({"role": "reader", "expires_at": "soon"})").pointers(), "/expires_at ");
  EXPECT_EQ(post("/v1/keys", R"({"role": "reader", "tenant_id": "nobody"})").pointers(), "/tenant_id ");
  EXPECT_EQ(post("/v1/keys", R"({"role": "reader", "role": "admin"})").pointers(), "/role ");
}

TEST_F(Keys, GiveNoMoreThanTheirMakerHas) {
  const auto bound = make(R"({"role": "admin", "tenant_id": "acme", "payloads": false,
                              "expires_at": "2100-01-01T00:00:00Z"})");
  const auto rejected = [&](const std::string& document) {
    const auto response = as(bound, "POST", "/v1/keys", document);
    EXPECT_EQ(response.status, 422) << response.body;
    return response.pointers();
  };
  EXPECT_EQ(rejected(R"({"role": "reader", "tenant_id": "other"})"), "/tenant_id ");
  EXPECT_EQ(rejected(R"({"role": "reader", "tenant_id": null})"), "/tenant_id ");
  EXPECT_EQ(rejected(R"({"role": "reader", "payloads": true})"), "/payloads ");
  EXPECT_EQ(rejected(R"({"role": "reader"})"), "/expires_at ");
  EXPECT_EQ(rejected(R"({"role": "reader", "expires_at": "2100-01-02T00:00:00Z"})"), "/expires_at ");
  const auto made =
      as(bound, "POST", "/v1/keys", R"({"role": "admin", "expires_at": "2099-01-01T00:00:00Z"})");
  EXPECT_EQ(made.status, 201);
  EXPECT_EQ(made.at("/tenant_id"), "acme");
  EXPECT_EQ(made.at("/payloads"), "false");
}

TEST_F(Keys, AKeyWithARateMakesNoneThatIsFaster) {
  const auto slow = make(R"({"role": "admin", "rate_per_second": 100})");
  for (const std::string rate : {"", R"(, "rate_per_second": null)", R"(, "rate_per_second": 100.5)"}) {
    const auto response = as(slow, "POST", "/v1/keys", R"({"role": "reader")" + rate + "}");
    EXPECT_EQ(response.status, 422) << rate;
    EXPECT_EQ(response.pointers(), "/rate_per_second ") << rate;
  }
  EXPECT_EQ(as(slow, "POST", "/v1/keys", R"({"role": "reader", "rate_per_second": 100})").status, 201);
  EXPECT_EQ(post("/v1/keys", R"({"role": "reader", "rate_per_second": 1000})").status, 201);
}

TEST_F(Keys, ATenantHasSoManyAndNoMore) {
  const auto bound = make(R"({"role": "admin", "tenant_id": "acme"})");
  const int limit = server->config().keys_per_tenant_max;
  database.sql(
      "insert into postrider.api_key (id, hash, role, tenant_id, revoked_at, expires_at) "
      "select gen_random_uuid(), sha256(n::text::bytea), 'reader', 'acme', "
      "case when n = 1 then now() end, case when n = 2 then now() end from generate_series(1, " +
      std::to_string(limit) + ") n");
  const auto last = as(bound, "POST", "/v1/keys", R"({"role": "reader"})");
  EXPECT_EQ(last.status, 201) << last.body;
  for (const auto& maker : {bound, admin_key}) {
    const auto response = as(maker, "POST", "/v1/keys", R"({"role": "reader", "tenant_id": "acme"})");
    EXPECT_EQ(response.status, 409);
    EXPECT_EQ(response.at("/type"), "urn:postrider:problem:too-many-keys");
    EXPECT_THAT(response.at("/detail"), HasSubstr(std::to_string(limit)));
  }
  EXPECT_EQ(remove("/v1/keys/" + last.at("/id")).status, 204);
  EXPECT_EQ(as(bound, "POST", "/v1/keys", R"({"role": "reader"})").status, 201);
  EXPECT_EQ(post("/v1/keys", R"({"role": "reader", "tenant_id": "other"})").status, 201);
  EXPECT_EQ(post("/v1/keys", R"({"role": "reader"})").status, 201);
}

TEST_F(Keys, OfOtherTenantsAreUnknownToABoundKey) {
  const auto foreign = post("/v1/keys", R"({"role": "reader", "tenant_id": "other"})");
  const auto unbound = post("/v1/keys", R"({"role": "reader"})");
  const auto bound = make(R"({"role": "admin", "tenant_id": "acme"})");
  for (const auto& key : {foreign.at("/id"), unbound.at("/id")}) {
    EXPECT_EQ(as(bound, "GET", "/v1/keys/" + key).status, 404);
    EXPECT_EQ(as(bound, "DELETE", "/v1/keys/" + key).status, 404);
    EXPECT_THAT(as(bound, "GET", "/v1/keys").body, Not(HasSubstr(key)));
  }
  EXPECT_EQ(as(bound, "GET", "/v1/keys?tenant=other").status, 422);
  EXPECT_EQ(as(foreign.at("/key"), "GET", "/v1/tenants/other").status, 200);
}

TEST_F(Keys, WithoutPayloadsShowNoBodies) {
  ASSERT_EQ(post("/v1/tenants/acme/events", R"({"type": "a", "id": "e1", "data": {"card": "4242"}})").status,
            202);
  const auto blind = make(R"({"role": "admin", "payloads": false})");
  const auto shown = as(blind, "GET", "/v1/tenants/acme/events/e1");
  EXPECT_EQ(shown.status, 200);
  EXPECT_THAT(shown.body, Not(HasSubstr("4242")));
  EXPECT_THAT(get("/v1/tenants/acme/events/e1").body, HasSubstr("4242"));
}

TEST_F(Keys, BoundToATenantPublishBatchesOfThatTenantOnly) {
  const auto bound = make(R"({"role": "publisher", "tenant_id": "acme"})");
  const auto response = as(bound, "POST", "/v1/events/batch",
                           R"([{"tenant_id": "acme", "type": "a", "data": 1},
                             {"tenant_id": "other", "type": "a", "data": 2},
                             {"tenant_id": "acme", "type": "a", "data": 3}])");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.at("/0/status"), "202");
  EXPECT_EQ(response.at("/1/status"), "404");
  EXPECT_EQ(response.at("/2/status"), "202");
  EXPECT_EQ(database.sql("select count(*) from postrider.event where tenant_id = 'other'"), "0");
}

TEST_F(Keys, SeeOnlyTheirTenantsAudit) {
  const auto bound = make(R"({"role": "operator", "tenant_id": "acme"})");
  const auto log = as(bound, "GET", "/v1/audit");
  EXPECT_EQ(log.status, 200);
  EXPECT_THAT(log.body, Not(HasSubstr("other")));
  EXPECT_THAT(log.body, HasSubstr("acme"));
  EXPECT_EQ(as(bound, "GET", "/v1/audit?tenant=other").status, 422);
}

TEST_F(Keys, WithARateAreToldWhatIsLeftAndThenToWait) {
  const auto limited = make(R"({"role": "reader", "rate_per_second": 0.01})");
  const auto first = as(limited, "GET", "/v1/tenants");
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.header("ratelimit-policy"), R"("key";q=1;w=100)");
  EXPECT_THAT(first.header("ratelimit").value_or(""), StartsWith(R"("key";r=0;t=)"));
  const auto second = as(limited, "GET", "/v1/tenants");
  EXPECT_EQ(second.status, 429);
  EXPECT_GT(std::stoi(second.header("retry-after").value_or("0")), 1);
  EXPECT_EQ(second.at("/type"), "urn:postrider:problem:too-fast");
  EXPECT_FALSE(get("/v1/tenants").header("ratelimit"));
}

TEST_F(Keys, PublishersAreToldWhatIsLeftOfTheTenantsRate) {
  ASSERT_EQ(patch("/v1/tenants/acme", R"({"publish_rate_per_second": 0.01})").status, 200);
  const std::string event = R"({"type": "a", "data": 1})";
  EXPECT_EQ(post("/v1/tenants/acme/events", event).status, 202);  // this one teaches the limit
  const auto rejected = post("/v1/tenants/acme/events", event);
  EXPECT_EQ(rejected.status, 429);
  EXPECT_EQ(rejected.header("ratelimit-policy"), R"("publish";q=1;w=100)");
  EXPECT_GT(std::stoi(rejected.header("retry-after").value_or("0")), 1);
  EXPECT_FALSE(post("/v1/tenants/other/events", event).header("ratelimit"));
}

TEST_F(Keys, RequestIdsOfTheCallerAreKeptIfTheyAreSane) {
  ApiServer::Call call{"GET", "/v1/nothing", "", admin_key};
  call.extra_headers = "x-request-id: Order-17.a_b\r\n";
  const auto kept = server->send(call);
  EXPECT_EQ(kept.header("x-request-id"), "Order-17.a_b");
  EXPECT_EQ(kept.at("/request_id"), "Order-17.a_b");
  for (const std::string& odd : {std::string("a b"), std::string("\"x\""), std::string(65, 'x')}) {
    call.extra_headers = "x-request-id: " + odd + "\r\n";
    EXPECT_THAT(server->send(call).header("x-request-id").value_or(""), StartsWith("req_"));
  }
}

struct Cursors : Keys {};

TEST_F(Cursors, AreWorthNothingElsewhere) {
  for (int i = 0; i < 3; ++i) make(R"({"role": "reader", "tenant_id": "acme"})");
  for (int i = 0; i < 3; ++i) make(R"({"role": "reader", "tenant_id": "other"})");
  const std::string cursor = get("/v1/keys?tenant=acme&limit=1").at("/next_cursor");
  EXPECT_THAT(cursor, StartsWith("c2_"));
  EXPECT_EQ(get("/v1/keys?tenant=acme&limit=2&cursor=" + cursor).status, 200);
  for (const std::string& wrong :
       {"/v1/keys?tenant=other&cursor=" + cursor, "/v1/keys?cursor=" + cursor, "/v1/audit?cursor=" + cursor,
        "/v1/tenants?cursor=" + cursor,
        "/v1/keys?tenant=acme&cursor=" + cursor.substr(0, cursor.size() - 2) + "00",
        "/v1/keys?tenant=acme&cursor=" + cursor + "&cursor=" + cursor,
        std::string("/v1/tenants?cursor=c1_61636d65"), std::string("/v1/tenants?cursor="),
        std::string("/v1/tenants?cursor=c2_00"), std::string("/v1/tenants?cursor=c2_zz")}) {
    const auto response = get(wrong);
    EXPECT_EQ(response.status, 422) << wrong;
    EXPECT_THAT(response.pointers(), HasSubstr("cursor")) << wrong;
  }
  const auto bound = make(R"({"role": "admin", "tenant_id": "acme"})");
  EXPECT_EQ(as(bound, "GET", "/v1/keys?tenant=acme&cursor=" + cursor).status, 422);
}

TEST_F(Cursors, SurviveInsertsBetweenPages) {
  for (const char* id : {"b", "d", "f"}) post("/v1/tenants", std::string(R"({"id": ")") + id + "\"}");
  std::string seen, cursor;
  for (int pages = 0; pages < 20; ++pages) {
    const auto page = get("/v1/tenants?limit=1" + cursor);
    seen += page.at("/data/0/id") + " ";
    if (page.at("/next_cursor") == "(nothing)") break;
    cursor = "&cursor=" + page.at("/next_cursor");
    if (pages == 1) post("/v1/tenants", R"({"id": "aa"})");  // before what was seen
    if (pages == 1) post("/v1/tenants", R"({"id": "c"})");   // behind it
  }
  EXPECT_EQ(seen, "acme b c d f other postrider ");
}

}  // namespace
}  // namespace postrider::api
