// Authentication, and requests that are rejected before they reach a handler.
#include "postrider/api/pgtest_fixture.hpp"
#include "postrider/base/encoding.hpp"
#include "postrider/registry/keys.hpp"

namespace postrider::api {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Access : ApiTest {
  // A key with that role; `columns` and `values` add to its row.
  std::string make_key(const std::string& role, const std::string& columns = "",
                       const std::string& values = "") {
    const std::string key = registry::generate_key();
    database.sql("insert into postrider.api_key (id, hash, role" + columns +
                 ") values (gen_random_uuid(), '\\x" + base::hex_encode(registry::hash_key(key).view()) +
                 "', '" + role + "'" + values + ")");
    return key;
  }
  int status(const std::string& method, const std::string& target, const std::string& key,
             const std::string& body = "") {
    return server->send({method, target, body, key}).status;
  }
};

TEST_F(Access, HealthAndMetricsNeedNoKey) {
  EXPECT_EQ(server->send({"GET", "/healthz"}).status, 200);
  EXPECT_EQ(get("/v1/tenants").status, 200);  // so the database is there
  EXPECT_EQ(server->send({"GET", "/readyz"}).status, 200);
  const auto metrics = server->send({"GET", "/metrics"});
  EXPECT_EQ(metrics.status, 200);
  EXPECT_THAT(metrics.body, HasSubstr("webhook_events_created_total"));
}

TEST_F(Access, ReadyzShowsTheReadinessNoteInItsSecondLine) {
  const ApiServer noted(
      {.database_url = database.url(), .guard = {}, .readiness_note = [] { return "restart postrider"; }});
  EXPECT_EQ(noted.send({"GET", "/v1/tenants", "", admin_key}).status, 200);  // so the database is there
  EXPECT_EQ(noted.send({"GET", "/readyz"}).body, "ready\nrestart postrider\n");
}

TEST_F(Access, UnknownRevokedAndExpiredKeysLookTheSame) {
  const auto revoked = make_key("admin", ", revoked_at", ", now()");
  const auto expired = make_key("admin", ", expires_at", ", now() - interval '1 second'");
  for (const std::string& key : {std::string(64, 'x'), revoked, expired}) {
    const auto response = server->send({"GET", "/v1/tenants", "", key});
    EXPECT_EQ(response.status, 401);
    EXPECT_THAT(response.header("www-authenticate").value_or(""), StartsWith("Bearer"));
    EXPECT_EQ(response.at("/type"), "urn:postrider:problem:unauthorized");
    EXPECT_EQ(response.at("/status"), "401");
    EXPECT_EQ(response.at("/detail"), "The API key is not valid: it is unknown, expired or revoked.");
    EXPECT_THAT(response.at("/request_id"), StartsWith("req_"));
  }
}

TEST_F(Access, AMissingOrMalformedAuthorizationHeaderIsNamed) {
  const auto missing = server->send({"GET", "/v1/tenants"});
  EXPECT_EQ(missing.status, 401);
  EXPECT_THAT(missing.at("/detail"), StartsWith("The Authorization header is missing."));
  for (const std::string& value :
       {"Basic " + admin_key, admin_key, std::string("Bearer"), std::string("Bearer ")}) {
    ApiServer::Call call{"GET", "/v1/tenants"};
    call.extra_headers = "authorization: " + value + "\r\n";
    const auto malformed = server->send(call);
    EXPECT_EQ(malformed.status, 401) << value;
    EXPECT_THAT(malformed.header("www-authenticate").value_or(""), StartsWith("Bearer"));
    EXPECT_THAT(malformed.at("/detail"), StartsWith("The Authorization header is malformed.")) << value;
  }
}

TEST_F(Access, ARejectionNamesTheRoleThatIsNeededAndTheOneThatTheKeyHas) {
  make_acme();
  EXPECT_EQ(server->send({"DELETE", "/v1/tenants/acme", "", make_key("reader")}).at("/detail"),
            "This operation needs an API key with the role operator or admin; this key has the role reader.");
  EXPECT_EQ(server->send({"GET", "/v1/keys", "", make_key("publisher")}).at("/detail"),
            "This operation needs an API key with the role admin; this key has the role publisher.");
  const auto bound = make_key("operator", ", tenant_id", ", 'acme'");
  EXPECT_EQ(server->send({"GET", "/v1/tenants", "", bound}).at("/detail"),
            "This operation concerns all tenants; this API key is bound to the tenant acme.");
}

TEST_F(Access, AnUnknownRouteAndMethodAreNamed) {
  EXPECT_EQ(get("/v1/tenant?x=1").at("/detail"), "There is no route for GET /v1/tenant.");
  EXPECT_THAT(put("/v1/tenants", "{}").at("/detail"),
              StartsWith("PUT is not allowed for /v1/tenants (allowed: GET"));
  const std::string path = "/" + std::string(400, 'x');
  EXPECT_EQ(get(path).at("/detail"), "There is no route for GET " + path.substr(0, 200) + "….");
}

TEST_F(Access, BodiesThatCannotBeReadAreExplained) {
  EXPECT_EQ(call("POST", "/v1/tenants").at("/detail"), "The request body is empty.");
  EXPECT_THAT(post("/v1/tenants", R"({"id": "a" "b": 1})").at("/detail"),
              StartsWith("Invalid JSON at byte "));
  EXPECT_THAT(post("/v1/tenants", "{} x").at("/detail"), StartsWith("Invalid JSON at byte 3"));
  const auto large = post("/v1/tenants", std::string(2 << 20, ' '));
  EXPECT_EQ(large.at("/type"), "urn:postrider:problem:content-too-large");
  EXPECT_EQ(large.at("/detail"), "The request body is 2,097,152 bytes; the limit is 1,048,576.");
  const auto invalid = post("/v1/tenants", R"({"colour": 1})");
  EXPECT_EQ(invalid.at("/detail"), "The request is invalid.");
  EXPECT_EQ(invalid.at("/errors/1/detail"), "unknown field");
}

TEST_F(Access, ARevokedKeyStopsWithTheControlLog) {
  const auto key = make_key("reader");
  EXPECT_EQ(status("GET", "/v1/tenants", key), 200);
  database.sql("update postrider.api_key set revoked_at = now() where role = 'reader'");
  server->forget_cached();
  EXPECT_EQ(status("GET", "/v1/tenants", key), 401);
}

TEST_F(Access, RolesAllowWhatTheyAreFor) {
  const std::string tenant = R"({"id": "t"})";
  EXPECT_EQ(status("POST", "/v1/tenants", make_key("operator"), tenant), 201);
  EXPECT_EQ(status("GET", "/v1/tenants/t", make_key("reader")), 200);
  EXPECT_EQ(status("DELETE", "/v1/tenants/t", make_key("reader")), 403);
  EXPECT_EQ(status("GET", "/v1/tenants/t", make_key("publisher")), 403);
}

TEST_F(Access, AKeyBoundToATenantSeesNoOther) {
  make_acme();
  post("/v1/tenants", R"({"id": "other"})");
  const auto key = make_key("operator", ", tenant_id", ", 'acme'");
  EXPECT_EQ(status("GET", "/v1/tenants/acme", key), 200);
  EXPECT_EQ(status("GET", "/v1/tenants/other", key), 404);
  EXPECT_EQ(status("GET", "/v1/tenants/other/endpoints", key), 404);
  EXPECT_EQ(status("GET", "/v1/tenants", key), 403);
}

TEST_F(Access, PathsMethodsTypesAndSizesAreJudgedFirst) {
  EXPECT_EQ(get("/v1/nothing").status, 404);
  const auto wrong_method = call("PUT", "/v1/tenants", "{}");
  EXPECT_EQ(wrong_method.status, 405);
  EXPECT_THAT(wrong_method.header("allow").value_or(""), HasSubstr("POST"));

  ApiServer::Call form{"POST", "/v1/tenants", "id=acme", admin_key, "content-type: text/plain\r\n"};
  EXPECT_EQ(server->send(form).status, 415);
  form.headers = "content-type: application/JSON; charset=utf-8\r\n";
  form.body = R"({"id": "acme"})";
  EXPECT_EQ(server->send(form).status, 201);
  EXPECT_EQ(post("/v1/tenants", std::string(2 << 20, ' ')).status, 413);
}

TEST_F(Access, AMadeUpCursorIsRejectedForHeadAsForGet) {
  make_acme();
  const std::string target = "/v1/tenants?cursor=c1_" + base::hex_encode("a");
  EXPECT_EQ(status("GET", target, admin_key), 422);
  EXPECT_EQ(status("HEAD", target, admin_key), 422);
  const std::string sealed = get("/v1/tenants?limit=1").at("/next_cursor");
  EXPECT_EQ(status("HEAD", "/v1/tenants?limit=1&cursor=" + sealed, admin_key), 200);
}

TEST_F(Access, OfManyErrorsTheFirstAreListedAndTheRestAreCounted) {
  std::string body = R"({"id": "acme")";
  for (int i = 0; i < 1000; ++i) body += ", \"unknown_" + std::to_string(i) + "\": 1";
  const auto response = post("/v1/tenants", body + "}");
  EXPECT_EQ(response.status, 422);
  EXPECT_EQ(response.json().at("errors").as_array().size(), 20);
  EXPECT_EQ(response.at("/errors/19/pointer"), "/unknown_19");
  EXPECT_THAT(response.at("/detail"), HasSubstr("980 more"));
  EXPECT_LT(response.body.size(), 4'000);

  std::string patterns;
  for (int i = 0; i < 50; ++i) patterns += std::string(i == 0 ? "" : ",") + R"("no pattern")";
  make_acme();
  const auto endpoint = post("/v1/tenants/acme/endpoints",
                             R"({"url": "https://a.example/", "event_types": [)" + patterns + "]}");
  EXPECT_EQ(endpoint.json().at("errors").as_array().size(), 20);
  EXPECT_THAT(endpoint.at("/detail"), HasSubstr("30 more"));
  const auto one = post("/v1/tenants", R"({"id": "x", "y": 1})");
  EXPECT_THAT(one.at("/detail"), Not(HasSubstr("more")));
}

TEST_F(Access, WhatIsNoJsonIsMalformed) {
  for (const std::string& body : {std::string("{"), std::string("{} x"), std::string("{\"id\": \"\xff\"}"),
                                  std::string("{'id': 1}"), std::string(70, '[') + std::string(70, ']')}) {
    const auto response = post("/v1/tenants", body);
    EXPECT_EQ(response.status, 400) << body;
    EXPECT_EQ(response.header("content-type"), "application/problem+json");
  }
  EXPECT_EQ(post("/v1/tenants", "[]").status, 422);
  EXPECT_EQ(post("/v1/tenants", "").status, 400);
}

TEST_F(Access, NodesAndFreeBucketsAreShown) {
  database.sql(
      "insert into postrider.node (id, slot, name, version, delivers) values "
      "('00000000-0000-7000-8000-000000000001', 1, 'one', '0.1', true)");
  database.sql(
      "update postrider.bucket_lease set owner = '00000000-0000-7000-8000-000000000001' "
      "where bucket < 3");
  const auto nodes = get("/v1/nodes");
  EXPECT_EQ(nodes.at("/data/0/name"), "one");
  EXPECT_EQ(nodes.at("/data/0/buckets"), "[0,1,2]");
  EXPECT_THAT(nodes.at("/free_buckets"), StartsWith("[3,4,"));
}

TEST(NoDatabase, IsSaidWithRetryAfter) {
  ApiServer server(
      {.database_url = "postgresql:///nowhere?host=/nonexistent", .guard = {}, .has_database = false});
  EXPECT_EQ(server.send({"GET", "/healthz"}).status, 200);
  EXPECT_EQ(server.send({"GET", "/readyz"}).status, 503);
  const auto response = server.send({"GET", "/v1/tenants", "", std::string(32, 'k')});
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.header("retry-after"), "1");
  EXPECT_EQ(server.send({"GET", "/v1/tenants"}).status, 401);
}

}  // namespace
}  // namespace postrider::api
