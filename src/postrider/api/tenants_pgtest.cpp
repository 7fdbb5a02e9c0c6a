#include "postrider/api/pgtest_fixture.hpp"

namespace postrider::api {
namespace {

struct TenantCalls : ApiTest {};

TEST_F(TenantCalls, MakeShowChangeAndDelete) {
  const auto made = post("/v1/tenants", R"({"id": "acme", "name": "Acme", "rate_per_second": 2.5,
      "contacts": ["ops@acme.example", "https://acme.example/hook"], "metadata": {"plan": "gold"}})");
  EXPECT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(made.header("location"), "/v1/tenants/acme");
  EXPECT_EQ(made.at("/status"), "active");
  EXPECT_EQ(made.at("/metadata/plan"), "gold");

  const auto changed = patch("/v1/tenants/acme", R"({"name": null, "max_in_flight": 9})");
  EXPECT_EQ(changed.status, 200) << changed.body;
  const auto shown = get("/v1/tenants/acme");
  EXPECT_EQ(shown.at("/name"), "null");
  EXPECT_EQ(shown.at("/max_in_flight"), "9");
  EXPECT_EQ(shown.at("/contacts/0/address"), "ops@acme.example");

  EXPECT_EQ(remove("/v1/tenants/acme").status, 204);
  EXPECT_EQ(get("/v1/tenants/acme").status, 404);
  EXPECT_EQ(patch("/v1/tenants/acme", "{}").status, 404);
  EXPECT_EQ(remove("/v1/tenants/acme").status, 404);
  EXPECT_EQ(post("/v1/tenants/acme/pause").status, 404);
}

TEST_F(TenantCalls, ConflictsAreSaid) {
  make_acme();
  EXPECT_EQ(post("/v1/tenants", R"({"id": "acme"})").at("/type"), "urn:postrider:problem:tenant-exists");
  EXPECT_EQ(post("/v1/tenants", R"({"id": "postrider"})").status, 409);
  remove("/v1/tenants/acme");
  EXPECT_EQ(post("/v1/tenants", R"({"id": "acme"})").at("/type"), "urn:postrider:problem:tenant-id-used");
}

TEST_F(TenantCalls, PutCreatesOrReplacesAllSettings) {
  const auto created = put("/v1/tenants/acme", R"({"name": "Acme", "max_in_flight": 9})");
  EXPECT_EQ(created.status, 201) << created.body;
  EXPECT_EQ(created.header("location"), "/v1/tenants/acme");
  EXPECT_EQ(created.at("/id"), "acme");
  post("/v1/tenants/acme/pause", R"({"reason": "incident 7"})");

  const auto replaced = put("/v1/tenants/acme", R"({"endpoints_max": 3})");
  EXPECT_EQ(replaced.status, 200) << replaced.body;
  EXPECT_EQ(replaced.at("/name"), "null");
  EXPECT_EQ(replaced.at("/max_in_flight"), "null");
  EXPECT_EQ(replaced.at("/endpoints_max"), "3");
  EXPECT_EQ(replaced.at("/status"), "paused");
  const auto again = put("/v1/tenants/acme", R"({"endpoints_max": 3})");
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.body, replaced.body);
  EXPECT_EQ(database.sql("select string_agg(action, ' ' order by id) from audit where tenant_id = 'acme'"),
            "tenant.create tenant.pause tenant.update");
}

TEST_F(TenantCalls, PutIsRejectedWhereTheIdOrTheRevisionDoesNotFit) {
  EXPECT_EQ(put("/v1/tenants/.acme", "{}").pointers(), "tenant ");
  EXPECT_EQ(put("/v1/tenants/acme", R"({"id": "acme"})").pointers(), "/id ");
  EXPECT_EQ(put("/v1/tenants/postrider", "{}").at("/type"), "urn:postrider:problem:reserved-tenant");
  const ApiServer::Call conditional{.method = "PUT",
                                    .target = "/v1/tenants/acme",
                                    .body = "{}",
                                    .key = admin_key,
                                    .extra_headers = "if-match: \"r7-0\"\r\n"};
  EXPECT_EQ(server->send(conditional).status, 412);
  make_acme();
  EXPECT_EQ(server->send(conditional).status, 412);
  remove("/v1/tenants/acme");
  EXPECT_EQ(put("/v1/tenants/acme", "{}").at("/type"), "urn:postrider:problem:tenant-id-used");
}

TEST_F(TenantCalls, PauseAndResumeTakeAReason) {
  make_acme();
  const auto paused = post("/v1/tenants/acme/pause", R"({"reason": "incident 7"})");
  EXPECT_EQ(paused.at("/status"), "paused");
  EXPECT_EQ(paused.at("/status_reason"), "incident 7");
  EXPECT_EQ(post("/v1/tenants/acme/resume").at("/status"), "active");
  EXPECT_EQ(post("/v1/tenants/acme/pause", R"({"because": "x"})").pointers(), "/because ");
}

TEST_F(TenantCalls, EveryBadFieldIsPointedAt) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({})", "/id "},
      {R"({"id": 7})", "/id "},
      {R"({"id": ""})", "/id "},
      {R"({"id": "a b"})", "/id "},
      {R"({"id": "a", "colour": "red", "a/b~c": 1})", "/colour /a~1b~0c "},
      {R"({"id": "a", "name": 1})", "/name "},
      {R"({"id": "a", "name": "x\u0000y"})", "/name "},
      {R"({"id": "a", "max_in_flight": 0})", "/max_in_flight "},
      {R"({"id": "a", "max_in_flight": 1.5})", "/max_in_flight "},
      {R"({"id": "a", "max_in_flight": 99999999999999999999})", "/max_in_flight "},
      {R"({"id": "a", "rate_per_second": 0})", "/rate_per_second "},
      {R"({"id": "a", "rate_per_second": "1"})", "/rate_per_second "},
      {R"({"id": "a", "publish_rate_per_second": -1})", "/publish_rate_per_second "},
      {R"({"id": "a", "payload_bytes_max": 0})", "/payload_bytes_max "},
      {R"({"id": "a", "endpoints_max": true})", "/endpoints_max "},
      {R"({"id": "a", "contacts": "x@y.z"})", "/contacts "},
      {R"({"id": "a", "contacts": ["x@y.z", "nobody", 3]})", "/contacts/1 /contacts/2 "},
      {R"({"id": "a", "contacts": ["x://y@b.example", "a@[127.0.0.1]", "\"a b\"@c.example", "a@b"]})",
       "/contacts/0 /contacts/1 /contacts/2 /contacts/3 "},
      {R"({"id": "a", "contacts": ["x@y.z", "X@y.z"]})", "/contacts/1 "},
      {R"({"id": "a", "contacts": [{"address": "x@y.z", "confirmed_at": 1, "id": 2}, {}]})",
       "/contacts/0/confirmed_at /contacts/0/id /contacts/1/address "},
      {R"({"id": "a", "metadata": []})", "/metadata "},
      {R"({"id": "a", "metadata": {"k": ["\u0000"]}})", "/metadata "},
  };
  for (const auto& [body, pointers] : cases) {
    const auto response = post("/v1/tenants", body);
    EXPECT_EQ(response.status, 422) << body;
    EXPECT_EQ(response.pointers(), pointers) << body;
  }
  EXPECT_EQ(database.sql("select count(*) from postrider.tenant where id <> 'postrider'"), "0");
}

TEST_F(TenantCalls, ListsComeInPages) {
  for (const char* id : {"a", "b", "c", "d", "e"})
    post("/v1/tenants", R"({"id": ")" + std::string(id) + "\"}");
  std::string seen, target = "/v1/tenants?limit=2", cursor;
  do {
    const auto page = get(target + (cursor.empty() ? "" : "&cursor=" + cursor));
    ASSERT_EQ(page.status, 200);
    for (const char* place : {"/data/0/id", "/data/1/id"}) seen += page.at(place) + " ";
    cursor = page.at("/next_cursor");
  } while (cursor != "(nothing)");
  EXPECT_EQ(seen, "a b c d e postrider ");
  for (const char* bad :
       {"limit=0", "limit=251", "limit=x", "cursor=zzz", "cursor=c1_00", "colour=red", "limit=1&limit=2"})
    EXPECT_EQ(get(std::string("/v1/tenants?") + bad).status, 422) << bad;
}

}  // namespace
}  // namespace postrider::api
