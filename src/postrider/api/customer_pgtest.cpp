// Operations and limits of customers, who use a bound key or a token.
#include <boost/json/parse.hpp>
#include <set>

#include "postrider/api/openapi.hpp"
#include "postrider/api/pgtest_fixture.hpp"
#include "postrider/api/wire/writable.hpp"

namespace postrider::api {
namespace {

using testing::HasSubstr;

constexpr const char* kOperatorsOnly = "urn:postrider:problem:operators-only";

struct Customer : ApiTest {
  Customer() : endpoint_path(make_acme_and_endpoint()), key(make_key("customer")) {}

  std::string make_acme_and_endpoint() {
    make_acme();
    return make_endpoint();
  }
  std::string make_key(const std::string& role, const std::string& more = "") {
    return post("/v1/keys", R"({"role": ")" + role + R"(", "tenant_id": "acme")" + more + "}").at("/key");
  }
  Reply make_token(const std::string& more = "") {
    return post(acme + "/tokens", R"({"expires_in_seconds": 600)" + more + "}");
  }
  Reply as(const std::string& credential, std::string method, std::string target, std::string body = "") {
    return server->send({std::move(method), std::move(target), std::move(body), credential});
  }
  Reply as_customer(std::string method, std::string target, std::string body = "") {
    return as(key, std::move(method), std::move(target), std::move(body));
  }

  const std::string acme = "/v1/tenants/acme";
  const std::string endpoint_path;
  const std::string key;
};

TEST_F(Customer, ManagesEndpointsAndItsNameAndContacts) {
  const std::string token = make_token().at("/token");
  for (const std::string& credential : {key, token}) {
    const auto made =
        as(credential, "POST", acme + "/endpoints",
           R"({"url": "https://hooks.acme.example/in", "event_types": ["a.*"], "timeout_ms": 30000,
                             "max_in_flight": 100})");
    ASSERT_EQ(made.status, 201) << made.body;
    EXPECT_EQ(made.at("/status_by"), "customer");
    const std::string one = acme + "/endpoints/" + made.at("/id");
    EXPECT_EQ(as(credential, "PUT", one + "/subscriptions", R"({"data": [{"pattern": "b.*"}]})").status, 200);
    EXPECT_EQ(as(credential, "GET", one + "/secrets").status, 200);
    EXPECT_EQ(as(credential, "POST", one + "/secrets/rotate", "{}").status, 201);
    EXPECT_EQ(as(credential, "POST", one + "/pause", "{}").status, 200);
    EXPECT_EQ(as(credential, "POST", one + "/resume", "{}").status, 200);
    EXPECT_EQ(as(credential, "DELETE", one).status, 200);
    const auto named =
        as(credential, "PATCH", acme, R"({"name": "Acme", "contacts": ["https://acme.example/n"]})");
    EXPECT_EQ(named.status, 200) << named.body;
  }
}

TEST_F(Customer, WritesNoFieldThatIsForOperators) {
  const std::string before = get(acme).body;
  for (const WritableField& field : writable_fields()) {
    if (field.object != Written::tenant || field.writer == Writer::customer) continue;
    const auto response = as_customer("PATCH", acme, "{\"" + std::string(field.name) + "\": null}");
    EXPECT_EQ(response.status, 403) << field.name;
    EXPECT_EQ(response.at("/type"), kOperatorsOnly) << field.name;
    EXPECT_EQ(response.pointers(), "/" + std::string(field.name) + " ");
  }
  EXPECT_EQ(get(acme).body, before);
  // An operator's key that is bound to the tenant may keep data of its own there.
  EXPECT_EQ(as(make_key("operator"), "PATCH", acme, R"({"metadata": {"a": 1}})").status, 200);
}

TEST_F(Customer, SetsNothingAboveTheMaxima) {
  const std::string create = R"({"url": "https://hooks.acme.example/in", "event_types": ["*"], )";
  for (const char* field : {"timeout_ms", "max_in_flight"}) {
    const int max = std::string_view(field) == "timeout_ms" ? server->config().customer_timeout_ms
                                                            : server->config().customer_max_in_flight;
    const std::string above = "\"" + std::string(field) + "\": " + std::to_string(max + 1) + "}";
    for (const auto& response : {as_customer("POST", acme + "/endpoints", create + above),
                                 as_customer("PUT", acme + "/endpoints/orders", create + above),
                                 as_customer("PATCH", endpoint_path, "{" + above)}) {
      EXPECT_EQ(response.status, 422) << field << response.body;
      EXPECT_EQ(response.pointers(), "/" + std::string(field) + " ");
      EXPECT_THAT(response.at("/errors/0/detail"), HasSubstr("the limit for customers"));
    }
    EXPECT_EQ(patch(endpoint_path, "{" + above).status, 200) << "an operator may";
  }
  const int headers_max = server->config().custom_headers_max;
  std::string headers;
  for (int i = 0; i <= headers_max; ++i)
    headers += (i ? ", " : "") + ("\"x-" + std::to_string(i) + "\": \"v\"");
  EXPECT_EQ(as_customer("PATCH", endpoint_path, "{\"headers\": {" + headers + "}}").pointers(), "/headers ");
}

TEST_F(Customer, ReplaysWithinTheRateAndTheQueueOfCustomers) {
  const int rate = server->config().customer_replay_rate_per_second;
  const std::string replay = R"({"only": "all", "since": ")" +
                             base::to_rfc3339(base::wall_now() - std::chrono::hours(1)) +
                             R"(", "reason": "x")";
  const std::string faster = replay + ", \"rate_per_second\": " + std::to_string(rate + 1) + "}";
  EXPECT_EQ(as_customer("POST", acme + "/replays", faster).pointers(), "/rate_per_second ");
  EXPECT_EQ(
      as_customer("POST", acme + "/dead-letters/replay",
                  R"({"all": true, "reason": "x", "rate_per_second": )" + std::to_string(rate + 1) + "}")
          .pointers(),
      "/rate_per_second ");
  EXPECT_EQ(post(acme + "/replays", faster).status, 202) << "an operator may";
  for (int i = 1; i < server->config().customer_queued_replays_max; ++i)
    EXPECT_EQ(as_customer("POST", acme + "/replays", replay + "}").status, 202);
  const auto one_more = as_customer("POST", acme + "/replays", replay + "}");
  EXPECT_EQ(one_more.status, 409);
  EXPECT_EQ(one_more.at("/type"), "urn:postrider:problem:too-many-replays");
  EXPECT_EQ(post(acme + "/replays", replay + "}").status, 202) << "an operator may";
}

TEST_F(Customer, LiftsItsOwnStopsAndThoseOfPostriderButNotAnOperators) {
  const std::string token = make_token().at("/token");
  for (const std::string& credential : {key, token}) {
    EXPECT_EQ(as(credential, "POST", endpoint_path + "/pause", "{}").at("/status_by"), "customer");
    EXPECT_EQ(as(credential, "POST", endpoint_path + "/resume", "{}").at("/status"), "active");
    database.sql("update postrider.endpoint set status = 'disabled', status_by = 'postrider'");
    EXPECT_EQ(as(credential, "POST", endpoint_path + "/resume", "{}").at("/status"), "active");
    ASSERT_EQ(post(endpoint_path + "/disable", R"({"reason": "abuse"})").status, 200);
    EXPECT_EQ(as(credential, "POST", endpoint_path + "/resume", "{}").at("/type"),
              "urn:postrider:problem:stopped-by-operator");
    ASSERT_EQ(post(endpoint_path + "/resume").status, 200);
  }
}

TEST_F(Customer, ErasesPayloadsOnlyIfOperatorsAllowIt) {
  EXPECT_EQ(as_customer("DELETE", acme + "/payloads").status, 403);
  EXPECT_EQ(as_customer("DELETE", acme + "/events/nothing/payload").status, 403);
}

TEST_F(Customer, TokensAreShownOnceListedAndRevoked) {
  const auto made = make_token(R"(, "label": "ann@acme.example")");
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(made.header("cache-control"), "no-store");
  EXPECT_EQ(made.header("location"), acme + "/tokens/" + made.at("/id"));
  const std::string one = acme + "/tokens/" + made.at("/id");
  const auto shown = get(one);
  EXPECT_EQ(shown.status, 200);
  EXPECT_THAT(shown.body, testing::Not(HasSubstr(made.at("/token"))));
  EXPECT_EQ(get(acme + "/tokens").at("/data/0/label"), "ann@acme.example");
  EXPECT_THAT(get("/v1/keys").body, testing::Not(HasSubstr(made.at("/id"))));
  EXPECT_EQ(get("/v1/keys/" + made.at("/id")).status, 404);
  EXPECT_EQ(
      database.sql("select count(*) from postrider.api_key where hash = '" + made.at("/token") + "'::bytea"),
      "0");

  const auto me = as(made.at("/token"), "GET", "/v1/me");
  EXPECT_EQ(me.at("/kind"), "token");
  EXPECT_EQ(me.at("/role"), "customer");
  EXPECT_EQ(me.at("/tenant_id"), "acme");
  EXPECT_EQ(me.at("/owner"), "ann@acme.example");

  EXPECT_EQ(remove(one).status, 204);
  server->forget_cached();
  EXPECT_EQ(as(made.at("/token"), "GET", "/v1/me").status, 401);
  EXPECT_EQ(get(one).status, 404);
  EXPECT_EQ(get(acme + "/tokens").at("/data"), "[]");
}

TEST_F(Customer, TokensNeedALifeOfMinutesToDaysAndNoMoreRightsThanTheirCreator) {
  EXPECT_EQ(post(acme + "/tokens", "{}").pointers(), "/expires_in_seconds ");
  for (const std::string seconds : {"59", "604801", "null", "\"1h\""})
    EXPECT_EQ(post(acme + "/tokens", "{\"expires_in_seconds\": " + seconds + "}").pointers(),
              "/expires_in_seconds ");
  EXPECT_EQ(make_token(R"(, "access": "write")").pointers(), "/access ");
  EXPECT_EQ(make_token(R"(, "role": "admin")").pointers(), "/role ");
  const std::string blind = make_key("operator", R"(, "payloads": false)");
  EXPECT_EQ(
      as(blind, "POST", acme + "/tokens", R"({"expires_in_seconds": 600, "payloads": true})").pointers(),
      "/payloads ");
  EXPECT_EQ(as(blind, "POST", acme + "/tokens", R"({"expires_in_seconds": 600})").at("/payloads"), "false");
  const std::string soon = base::to_rfc3339(base::wall_now() + std::chrono::minutes(5));
  const std::string brief = make_key("operator", R"(, "expires_at": ")" + soon + "\"");
  EXPECT_EQ(as(brief, "POST", acme + "/tokens", R"({"expires_in_seconds": 600})").pointers(),
            "/expires_in_seconds ");
  EXPECT_EQ(as(key, "POST", acme + "/tokens", R"({"expires_in_seconds": 600})").status, 403);
  EXPECT_EQ(post("/v1/tenants/nobody/tokens", R"({"expires_in_seconds": 600})").status, 404);
}

TEST_F(Customer, ATokenWithoutPayloadsSeesNone) {
  const std::string blind = make_token(R"(, "payloads": false)").at("/token");
  EXPECT_EQ(as(blind, "GET", "/v1/me").at("/payloads"), "false");
  const std::string reading = make_token(R"(, "access": "read")").at("/token");
  EXPECT_EQ(as(reading, "GET", endpoint_path).status, 200);
  const auto denied = as(reading, "PATCH", endpoint_path, "{}");
  EXPECT_EQ(denied.status, 403);
  EXPECT_THAT(denied.at("/detail"), HasSubstr("is read-only"));
}

TEST_F(Customer, TheAuditLogShowsTheOwnerOfAKeyAndTheLabelOfAToken) {
  const std::string owned = make_key("customer", R"(, "owner": "Ann, Acme")");
  ASSERT_EQ(as(owned, "POST", endpoint_path + "/pause", "{}").status, 200);
  const std::string token = make_token(R"(, "label": "bob@acme.example")").at("/token");
  ASSERT_EQ(as(token, "POST", endpoint_path + "/resume", "{}").status, 200);
  EXPECT_EQ(get("/v1/audit?action=endpoint.pause").at("/data/0/actor/name"), "Ann, Acme");
  EXPECT_EQ(get("/v1/audit?action=endpoint.resume").at("/data/0/actor/name"), "bob@acme.example");
  EXPECT_EQ(get("/v1/audit?action=token.create").at("/data/0/object").substr(0, 4), "key_");
  // Names of operators are not for customers.
  const std::string bound = make_key("operator");
  patch(endpoint_path, R"({"description": "x"})");
  EXPECT_EQ(as(bound, "GET", "/v1/audit?action=endpoint.update").at("/data/0/actor/name"), "null");
}

// Every field of a document is on the list of writable fields, so that a new field cannot be forgotten.
TEST(Writable, ListsEveryFieldOfTenantsAndEndpoints) {
  const auto document = boost::json::parse(openapi_document());
  const auto& schemas = document.at("components").at("schemas");
  const auto listed = [](Written object) {
    std::set<std::string> names;
    for (const WritableField& field : writable_fields())
      if (field.object == object) names.emplace(field.name);
    return names;
  };
  const auto properties = [&](const char* schema) {
    std::set<std::string> names;
    for (const auto& member : schemas.at(schema).at("properties").as_object()) names.emplace(member.key());
    return names;
  };
  EXPECT_EQ(listed(Written::tenant), properties("TenantFields"));
  std::set<std::string> of_endpoint = properties("EndpointFields");
  of_endpoint.insert("secret");
  EXPECT_EQ(listed(Written::endpoint), of_endpoint);
}

}  // namespace
}  // namespace postrider::api
