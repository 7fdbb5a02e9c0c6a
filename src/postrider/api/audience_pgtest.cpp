// What a key that is bound to a tenant is shown of the network, the machines and the people behind the
// platform.
#include <boost/json/serialize.hpp>

#include "postrider/api/pgtest_fixture.hpp"

namespace postrider::api {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Shown : ApiTest {
  // Names are looked up, and `localhost` is not rejected for its text alone.
  static http::GuardPolicy policy() {
    http::GuardPolicy policy;
    policy.allow_networks.push_back(*http::Network::parse("192.168.77.0/24"));
    return policy;
  }
  Shown() : ApiTest(policy(), true) {
    make_acme();
    endpoint_path = make_endpoint();
    bound = post("/v1/keys", R"({"role": "operator", "tenant_id": "acme"})").at("/key");
  }

  Reply as_customer(std::string method, std::string target, std::string body = "") {
    return server->send({std::move(method), std::move(target), std::move(body), bound});
  }
  void send_to(const std::string& url) { database.sql("update postrider.endpoint set url = '" + url + "'"); }

  // A delivery to a name that resolved to an internal address, from the node `db-host-7`.
  void make_blocked_attempt() {
    ASSERT_EQ(post("/v1/tenants/acme/events", R"({"id": "e1", "type": "invoice.paid", "data": 1})").status,
              202);
    database.sql(
        "insert into postrider.node (id, slot, name, version, delivers) values "
        "('00000000-0000-7000-8000-000000000001', 1, 'db-host-7', '0.1', true)");
    database.sql(
        "insert into attempt (delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, outcome, "
        "error, "
        "error_detail, started_at, total_us, address, node_id, created_at) select id, 1, bucket, "
        "endpoint_id, "
        "event_id, tenant_id, 'dead_letter', 'blocked', 'destination not allowed: hooks.example.com resolves "
        "to "
        "10.9.8.7; the address is in a private network', now(), 5, '10.9.8.7', "
        "'00000000-0000-7000-8000-000000000001', created_at from queue where bucket >= 0");
    database.sql(
        "insert into dead_letter (delivery_id, bucket, endpoint_id, event_id, tenant_id, cause, attempts, "
        "error, "
        "error_detail, created_at) select delivery_id, bucket, endpoint_id, event_id, tenant_id, 'blocked', "
        "1, error, "
        "error_detail, created_at from attempt");
    database.sql("delete from queue where bucket >= 0");
  }

  const std::string acme = "/v1/tenants/acme";
  std::string endpoint_path, bound;
};

TEST_F(Shown, WhyAUrlIsRejectedDependsOnWhoAsks) {
  const std::pair<const char*, const char*> typed[] = {
      {"http://hooks.acme.example/", "http://"},
      {"https://hooks.acme.example:22/", "the port"},
      {"https://10.0.0.1/", "private network"},
      {"https://127.0.0.1/", "loopback"},
  };
  for (const auto& [url, why] : typed) {
    const std::string body = R"({"event_types": ["*"], "url": ")" + std::string(url) + "\"}";
    const auto rejected = as_customer("POST", acme + "/endpoints", body);
    EXPECT_EQ(rejected.pointers(), "/url ") << url;
    EXPECT_THAT(rejected.at("/errors/0/detail"), AllOf(HasSubstr(why), Not(HasSubstr("allow_")))) << url;
    EXPECT_THAT(post(acme + "/endpoints", body).at("/errors/0/detail"), HasSubstr("allow_")) << url;
  }
  const std::string body = R"({"event_types": ["*"], "url": "https://localhost/"})";
  const std::string change = R"({"url": "https://localhost/"})";
  EXPECT_THAT(post(acme + "/endpoints", body).at("/errors/0/detail"), HasSubstr("localhost resolves to "));
  for (const auto& rejected :
       {as_customer("POST", acme + "/endpoints", body), as_customer("PUT", acme + "/endpoints/own", body),
        as_customer("PATCH", endpoint_path, change)}) {
    EXPECT_EQ(rejected.status, 422);
    EXPECT_EQ(rejected.at("/errors/0/detail"), "destination not allowed");
  }
}

TEST_F(Shown, ATestSendTellsACustomerNothingAboutAName) {
  send_to("https://localhost/in");
  const auto seen = as_customer("POST", endpoint_path + "/test");
  EXPECT_EQ(seen.at("/error"), "blocked");
  EXPECT_EQ(seen.at("/error_detail"), "destination not allowed");
  EXPECT_EQ(seen.at("/address"), "null");
  EXPECT_THAT(post(endpoint_path + "/test").at("/error_detail"), HasSubstr("localhost resolves to "));
  send_to("https://10.0.0.1/in");
  EXPECT_EQ(as_customer("POST", endpoint_path + "/test").at("/error_detail"),
            "destination not allowed: the address is in a private network");
}

TEST_F(Shown, AddressesAndNodesOfAttemptsAreForOperators) {
  make_blocked_attempt();
  const std::string delivery = acme + "/deliveries/" + get(acme + "/deliveries").at("/data/0/id");
  for (const std::string& target :
       {acme + "/attempts", acme + "/attempts?format=ndjson", acme + "/deliveries", delivery,
        delivery + "/attempts", acme + "/dead-letters", acme + "/dead-letters?format=csv",
        acme + "/events/e1"}) {
    const auto seen = as_customer("GET", target);
    EXPECT_EQ(seen.status, 200) << target;
    EXPECT_THAT(seen.body, AllOf(HasSubstr("destination not allowed"), Not(HasSubstr("10.9.8.7")),
                                 Not(HasSubstr("private")), Not(HasSubstr("db-host"))))
        << target;
    EXPECT_THAT(get(target).body, HasSubstr("10.9.8.7")) << target;
  }
  EXPECT_THAT(get(delivery + "/attempts").body, HasSubstr("db-host-7"));
}

TEST_F(Shown, WhatAnEndpointSaysOfItselfIsWordedToo) {
  database.sql(
      "update postrider.endpoint set held_reason = 'the file /etc/keys/acme cannot be read', held_since = "
      "now(), "
      "last_probe_error = 'destination not allowed: hooks.example.com resolves to 10.9.8.7; the address is "
      "in a "
      "private network'");
  for (const std::string& target : {endpoint_path, acme + "/endpoints"}) {
    EXPECT_THAT(
        as_customer("GET", target).body,
        AllOf(Not(HasSubstr("10.9.8.7")), Not(HasSubstr("/etc/keys")), HasSubstr("destination not allowed")));
    EXPECT_THAT(get(target).body, AllOf(HasSubstr("10.9.8.7"), HasSubstr("/etc/keys")));
  }
  EXPECT_EQ(as_customer("GET", endpoint_path).at("/held_reason"), "the secret cannot be read at the moment");
}

TEST_F(Shown, TheAuditLogKeepsTheOperatorsStaffToItself) {
  ASSERT_EQ(post(endpoint_path + "/pause", R"({"reason": "ticket 7"})").status, 200);
  ASSERT_EQ(post(endpoint_path + "/resume").status, 200);
  ASSERT_EQ(as_customer("POST", endpoint_path + "/pause", R"({"reason": "lunch"})").status, 200);
  database.sql(
      "select postrider.write_audit('command', 'ann@db-host-7', 'tenant.pause', 'acme', 'acme', "
      "reason => 'ticket 8')");
  const auto pauses = [](const Reply& response) {
    std::string all;
    const auto document = response.json();
    for (const auto& entry : document.at("data").as_array())
      if (entry.at("action") == "endpoint.pause")
        all += boost::json::serialize(entry.at("actor").at("on_behalf_of")) + " " +
               boost::json::serialize(entry.at("reason")) + " " +
               boost::json::serialize(entry.at("address")) + "\n";
    return all;
  };
  EXPECT_EQ(pauses(get("/v1/audit?tenant=acme")),
            "\"customer\" \"lunch\" \"127.0.0.1\"\n\"operator\" \"ticket 7\" \"127.0.0.1\"\n");
  const auto seen = as_customer("GET", "/v1/audit");
  EXPECT_EQ(pauses(seen), "\"customer\" \"lunch\" \"127.0.0.1\"\n\"operator\" null null\n");
  EXPECT_THAT(seen.body,
              AllOf(Not(HasSubstr("db-host-7")), Not(HasSubstr("ticket 8")), HasSubstr("tenant.pause")));
  EXPECT_EQ(as_customer("GET", "/v1/audit?actor=ann@db-host-7").at("/data"), "[]");
  EXPECT_THAT(get("/v1/audit?actor=ann@db-host-7").body, HasSubstr("ticket 8"));
}

TEST_F(Shown, WhichOperatorRequestedAReplayAndWhyIsForOperators) {
  make_blocked_attempt();
  const std::string delivery = get(acme + "/deliveries").at("/data/0/id");
  const std::string replay = acme + "/deliveries/" + delivery + "/replay", range = acme + "/replays";
  const std::string since =
      R"(, "only": "all", "since": ")" +
      database.sql("select to_char(now() - interval '1 hour', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')") + "\"}";
  ASSERT_EQ(post(replay, R"({"reason": "ticket 7"})").status, 202);
  ASSERT_EQ(as_customer("POST", replay, R"({"reason": "lunch"})").status, 202);
  ASSERT_EQ(post(range, R"({"reason": "ticket 8")" + since).status, 202);
  const auto own = as_customer("POST", range, R"({"reason": "dinner")" + since);
  ASSERT_EQ(own.status, 202);
  EXPECT_EQ(own.at("/reason"), "dinner");

  const auto listed = get(range), seen = as_customer("GET", range);
  EXPECT_THAT(listed.body, AllOf(HasSubstr("ticket 7"), HasSubstr("ticket 8"), HasSubstr("lunch")));
  EXPECT_THAT(seen.body, AllOf(HasSubstr("lunch"), HasSubstr("dinner"), Not(HasSubstr("ticket"))));
  const auto document = seen.json();
  for (const auto& each : document.at("data").as_array()) {
    const bool is_own = each.at("on_behalf_of") == "customer";
    EXPECT_EQ(each.at("reason").is_null(), !is_own) << seen.body;
    EXPECT_EQ(each.at("requested_by").is_null(), !is_own) << seen.body;
  }
  const std::string operators = range + "/" + listed.at("/data/1/id");
  EXPECT_EQ(get(operators).at("/reason"), "ticket 8");
  EXPECT_EQ(as_customer("GET", operators).at("/reason"), "null");
  EXPECT_EQ(as_customer("POST", operators + "/cancel").at("/requested_by"), "null");
}

TEST_F(Shown, WhoCanceledADeliveryIsForOperatorsButNotThatRetentionDid) {
  make_blocked_attempt();
  const std::string detail = acme + "/attempts";
  const auto canceled = [this](const std::string& why) {
    database.sql("update attempt set outcome = 'canceled', error = null, error_detail = '" + why + "'");
  };
  canceled("canceled by key_1: ticket 7");
  EXPECT_EQ(as_customer("GET", detail).at("/data/0/error_detail"), "canceled by hand");
  EXPECT_EQ(get(detail).at("/data/0/error_detail"), "canceled by key_1: ticket 7");
  const std::string retention = "canceled by retention after twice retain_events: the endpoint is paused";
  canceled(retention);
  EXPECT_EQ(as_customer("GET", detail).at("/data/0/error_detail"), retention);
}

}  // namespace
}  // namespace postrider::api
