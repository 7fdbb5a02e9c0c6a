// What a key that is bound to a tenant may not do in its own tenant: lift its limits, or undo what an
// operator did.
#include "postrider/api/pgtest_fixture.hpp"

namespace postrider::api {
namespace {

using testing::HasSubstr;

constexpr const char* kOperatorsOnly = "urn:postrider:problem:operators-only";
constexpr const char* kStoppedByOperator = "urn:postrider:problem:stopped-by-operator";

struct Rights : ApiTest {
  Rights() : endpoint_path(make_acme_and_endpoint()), bound(make_key("operator")) {}

  std::string make_acme_and_endpoint() {
    make_acme();
    return make_endpoint();
  }

  std::string make_key(const std::string& role) {
    return post("/v1/keys", R"({"role": ")" + role + R"(", "tenant_id": "acme"})").at("/key");
  }
  Reply as_customer(std::string method, std::string target, std::string body = "") {
    return server->send({std::move(method), std::move(target), std::move(body), bound});
  }
  // "status|status_by|status_reason"
  std::string state() { return state_of(get(endpoint_path)); }
  static std::string state_of(const Reply& response) {
    return response.at("/status") + "|" + response.at("/status_by") + "|" + response.at("/status_reason");
  }
  std::string endpoint_id() const { return endpoint_path.substr(endpoint_path.rfind('/') + 1); }

  const std::string acme = "/v1/tenants/acme";
  const std::string endpoint_path;
  const std::string bound;
};

TEST_F(Rights, BoundKeysOfAnyRoleChangeOnlyNameContactsAndMetadataOfTheirTenant) {
  const std::string limits[][2] = {{"max_in_flight", "100000"},
                                   {"rate_per_second", "null"},
                                   {"publish_rate_per_second", "1000000"},
                                   {"payload_bytes_max", "null"},
                                   {"endpoints_max", "1000000"}};
  patch(acme, R"({"max_in_flight": 1, "rate_per_second": 1, "publish_rate_per_second": 1,
                  "payload_bytes_max": 1024, "endpoints_max": 2})");
  const std::string before = get(acme).body;
  for (const std::string role : {"operator", "admin"}) {
    const std::string key = make_key(role);
    for (const auto& [field, value] : limits) {
      const auto response =
          server->send({"PATCH", acme, "{\"name\": \"x\", \"" + field + "\": " + value + "}", key});
      EXPECT_EQ(response.status, 403) << field;
      EXPECT_EQ(response.at("/type"), kOperatorsOnly) << field;
      EXPECT_EQ(response.pointers(), "/" + field + " ");
    }
    EXPECT_EQ(get(acme).body, before);
  }
  const auto changed = as_customer("PATCH", acme, R"({"name": "Acme", "contacts": ["https://acme.example/n"],
                                                      "metadata": {"a": 1}})");
  EXPECT_EQ(changed.status, 200) << changed.body;
  EXPECT_EQ(changed.at("/name"), "Acme");
  EXPECT_EQ(changed.at("/metadata/a"), "1");
}

// Also for fields that the record gains later.
TEST_F(Rights, NoOtherFieldOfTheTenantIsForABoundKeyToWrite) {
  const auto before = get(acme);
  const auto document = before.json();
  for (const auto& member : document.as_object()) {
    const std::string field(member.key());
    if (field == "name" || field == "contacts" || field == "metadata") continue;
    for (const std::string value : {"null", "1", "\"active\""}) {
      const auto response = as_customer("PATCH", acme, "{\"" + field + "\": " + value + "}");
      EXPECT_TRUE(response.status == 403 || response.status == 422) << field << " " << response.status;
    }
  }
  EXPECT_EQ(get(acme).body, before.body);
}

TEST_F(Rights, BoundKeysNeitherPauseNorResumeNorDeleteTheirTenant) {
  ASSERT_EQ(post(acme + "/pause", R"({"reason": "abuse"})").at("/status_by"), "operator");
  for (const std::string role : {"operator", "admin"}) {
    const std::string key = make_key(role);
    for (const auto& [method, target] : {std::pair{"POST", acme + "/resume"},
                                         std::pair{"POST", acme + "/pause"}, std::pair{"DELETE", acme}}) {
      const auto response = server->send({method, target, method == std::string("POST") ? "{}" : "", key});
      EXPECT_EQ(response.status, 403) << method << target;
      EXPECT_EQ(response.at("/type"), kOperatorsOnly);
    }
  }
  EXPECT_EQ(state_of(get(acme)), "paused|operator|abuse");
  EXPECT_EQ(post(acme + "/resume").at("/status"), "active");
}

TEST_F(Rights, AnOperatorsStopIsNeitherUndoneNorReplacedNorDeletedByABoundKey) {
  const std::string document = R"({"url": "https://hooks.acme.example/in", "event_types": ["*"]})";
  for (const auto& [verb, status] : {std::pair{"pause", "paused"}, std::pair{"disable", "disabled"}}) {
    ASSERT_EQ(put(acme + "/endpoints/orders", document).status / 100, 2);
    const std::string orders = acme + "/endpoints/orders";
    ASSERT_EQ(post(orders + "/" + verb, R"({"reason": "abuse"})").status, 200);
    const std::string stopped = std::string(status) + "|operator|abuse";
    for (const std::string attempt : {"/resume", "/pause", "/disable", "/pause", "/resume"}) {
      const auto response = as_customer("POST", orders + attempt, R"({"reason": "mine"})");
      EXPECT_EQ(response.status, 403) << attempt << response.body;
      EXPECT_EQ(response.at("/type"), kStoppedByOperator) << attempt;
      EXPECT_THAT(response.at("/detail"), HasSubstr("operator"));
    }
    const auto deleted = as_customer("DELETE", orders);
    EXPECT_EQ(deleted.status, 403);
    EXPECT_EQ(deleted.at("/type"), kStoppedByOperator);
    EXPECT_EQ(as_customer("PUT", orders, document).status, 200);
    EXPECT_EQ(
        as_customer("PUT", orders, R"({"url": "https://new.acme.example/", "event_types": ["*"]})").status,
        200);
    EXPECT_EQ(as_customer("PATCH", orders, R"({"url": "https://other.acme.example/"})").status, 200);
    EXPECT_EQ(as_customer("PATCH", orders, R"({"status": "active"})").status, 422);
    EXPECT_EQ(state_of(get(orders)), stopped);
    EXPECT_EQ(post(orders + "/resume").at("/status"), "active");
  }
}

TEST_F(Rights, BoundKeysEndTheirOwnStopsAndThoseOfPostrider) {
  EXPECT_EQ(state_of(as_customer("POST", endpoint_path + "/pause")), "paused|customer|null");
  EXPECT_EQ(state_of(as_customer("POST", endpoint_path + "/resume")), "active|customer|null");
  EXPECT_EQ(state_of(as_customer("POST", endpoint_path + "/disable")), "disabled|customer|null");
  EXPECT_EQ(as_customer("POST", endpoint_path + "/resume").at("/status"), "active");
  database.sql("update postrider.endpoint set status = 'disabled', status_by = 'postrider'");
  EXPECT_EQ(state_of(as_customer("POST", endpoint_path + "/resume")), "active|customer|null");
  EXPECT_EQ(as_customer("DELETE", endpoint_path).status, 200);
}

TEST_F(Rights, AnOperatorWhoStopsWhatTheCustomerStoppedTakesItOver) {
  ASSERT_EQ(as_customer("POST", endpoint_path + "/pause", R"({"reason": "lunch"})").status, 200);
  EXPECT_EQ(state_of(post(endpoint_path + "/pause")), "paused|operator|lunch");
  EXPECT_EQ(as_customer("POST", endpoint_path + "/resume").status, 403);
  EXPECT_EQ(state(), "paused|operator|lunch");
}

TEST_F(Rights, TheSqlFunctionsActForTheOperator) {
  const auto in_sql = [this](const std::string& function, const std::string& reason) {
    database.sql("select postrider." + function + "('" + endpoint_id() + "', '" + reason + "')");
  };
  in_sql("pause_endpoint", "ticket 1");
  EXPECT_EQ(state(), "paused|operator|ticket 1");
  EXPECT_EQ(as_customer("POST", endpoint_path + "/resume").status, 403);
  in_sql("resume_endpoint", "ticket 2");
  EXPECT_EQ(state(), "active|operator|ticket 2");

  const auto paused = as_customer("POST", endpoint_path + "/pause", R"({"reason": "lunch"})");
  in_sql("pause_endpoint", "ticket 3");
  EXPECT_EQ(state(), "paused|operator|ticket 3");
  EXPECT_EQ(get(endpoint_path).at("/status_since"), paused.at("/status_since"));
  EXPECT_EQ(database.sql("select count(*) from postrider.pause_span where until is null"), "1");
  EXPECT_EQ(as_customer("POST", endpoint_path + "/resume").status, 403);
  EXPECT_EQ(database.sql("select status_by from postrider.webhook_endpoints"), "operator");
}

TEST_F(Rights, PausingAPausedEndpointInSqlReplacesTheReason) {
  ASSERT_EQ(post(endpoint_path + "/pause").status, 200);
  EXPECT_EQ(state(), "paused|operator|null");
  database.sql("select postrider.pause_endpoint('" + endpoint_id() + "', 'second reason')");
  EXPECT_EQ(state(), "paused|operator|second reason");
  database.sql("select postrider.pause_endpoint('acme', '" + endpoint_id() + "', 'third reason')");
  EXPECT_EQ(state(), "paused|operator|third reason");
  EXPECT_EQ(database.sql("select count(*) from postrider.pause_span"), "1");
}

TEST_F(Rights, TheSqlFunctionsTakeATenantWhereSeveralUseOneEndpointId) {
  const std::string orders = R"({"url": "https://hooks.example.com", "event_types": ["*"]})";
  post("/v1/tenants", R"({"id": "gamma"})");
  ASSERT_EQ(put(acme + "/endpoints/orders", orders).status, 201);
  ASSERT_EQ(put("/v1/tenants/gamma/endpoints/orders", orders).status, 201);
  const auto statuses = [this] {
    return database.sql(
        "select string_agg(tenant_id || ' ' || status, ', ' order by tenant_id) "
        "from postrider.endpoint where public_id = 'orders'");
  };
  const auto error_of = [this](const std::string& call) -> std::string {
    try {
      database.sql("select postrider." + call);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "no error";
  };

  const std::string ambiguous = error_of("pause_endpoint('orders', 'customer asked')");
  EXPECT_THAT(ambiguous, HasSubstr("endpoint orders is ambiguous: 2 tenants have an endpoint with this ID"));
  EXPECT_THAT(ambiguous, HasSubstr("Tenants: acme, gamma."));
  EXPECT_THAT(ambiguous, HasSubstr("Pass the tenant as the first argument: ('acme', 'orders', 'reason')."));
  EXPECT_THAT(error_of("resume_endpoint('orders', 'fixed')"), HasSubstr("endpoint orders is ambiguous"));
  EXPECT_EQ(statuses(), "acme active, gamma active");

  database.sql("select postrider.pause_endpoint('gamma', 'orders', 'customer asked')");
  EXPECT_EQ(statuses(), "acme active, gamma paused");
  database.sql("select postrider.resume_endpoint('gamma', 'orders', 'fixed')");
  EXPECT_EQ(statuses(), "acme active, gamma active");
  EXPECT_THAT(error_of("pause_endpoint('beta', 'orders', 'x')"),
              HasSubstr("endpoint orders of tenant beta does not exist"));
  EXPECT_THAT(error_of("pause_endpoint('nope', 'x')"), HasSubstr("endpoint nope does not exist"));
  EXPECT_THAT(error_of("pause_endpoint('acme', 'orders', ' ')"), HasSubstr("reason is required"));

  ASSERT_EQ(remove("/v1/tenants/gamma/endpoints/orders").status, 200);
  database.sql("select postrider.pause_endpoint('orders', 'customer asked')");
  EXPECT_EQ(get(acme + "/endpoints/orders").at("/status"), "paused");
}

TEST_F(Rights, WhoMadeItIsWhoSetItsFirstStatus) {
  const auto made = as_customer("POST", acme + "/endpoints",
                                R"({"url": "https://hooks.acme.example/in", "event_types": ["*"]})");
  EXPECT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(made.at("/status_by"), "customer");
  EXPECT_EQ(get(endpoint_path).at("/status_by"), "operator");
  EXPECT_EQ(get(acme).at("/status_by"), "operator");
  EXPECT_EQ(get("/v1/tenants/postrider").at("/status_by"), "postrider");
}

TEST_F(Rights, ATenantsPayloadsAreNoLargerThanWhatALaneHolds) {
  const auto lane = std::to_string(server->config().lane_bytes_max);
  const auto beyond = std::to_string(server->config().lane_bytes_max + 1);
  EXPECT_EQ(patch(acme, "{\"payload_bytes_max\": " + lane + "}").status, 200);
  EXPECT_EQ(patch(acme, "{\"payload_bytes_max\": " + beyond + "}").pointers(), "/payload_bytes_max ");
}

}  // namespace
}  // namespace postrider::api
