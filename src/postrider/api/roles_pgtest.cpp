// Every route × every role × (unbound, bound to the tenant, bound to another), and the tokens: which of them
// a route lets in.
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "postrider/api/pgtest_fixture.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/registry/keys.hpp"

namespace postrider::api {
namespace {

using registry::Role;

constexpr Role kRoles[] = {Role::admin, Role::operator_, Role::customer, Role::publisher, Role::reader};
enum class Bound { no, own, other };
constexpr Bound kBounds[] = {Bound::no, Bound::own, Bound::other};

// Responses that do not end, or only after a while: requested only where they must be rejected.
bool is_long(const Routes::Entry& route) {
  return route.pattern.ends_with("/stream") || route.pattern == "/v1/inbox/claim";
}

bool has_tenant(const Routes::Entry& route) {
  return route.pattern.find("/{tenant}") != std::string::npos;
}

// The path with parameters filled in.
std::string target_of(const Routes::Entry& route, const std::string& tenant) {
  std::string target;
  for (size_t at = 0; at < route.pattern.size();) {
    if (route.pattern[at] != '{') {
      target += route.pattern[at++];
      continue;
    }
    const size_t end = route.pattern.find('}', at);
    target += route.pattern.substr(at, end - at) == "{tenant" ? tenant : "nothing";
    at = end + 1;
  }
  return target;
}

struct Roles : ApiTest {
  // One tenant and one key per cell, so that no cell sees what another one did.
  struct Cell {
    std::string tenant, key;
  };
  enum class Half { both, reading };  // of a customer's rights
  Cell make_cell(Role role, Bound bound, Half half = Half::both) {
    const std::string number = std::to_string(++cells_);
    Cell cell{"t" + number, "cell-" + number + std::string(32, 'x')};
    database.sql("insert into postrider.tenant (id) values ('" + cell.tenant + "'), ('o" + number + "')");
    const std::string tenant = bound == Bound::no    ? "null"
                               : bound == Bound::own ? "'" + cell.tenant + "'"
                                                     : "'o" + number + "'";
    database.sql(
        "insert into postrider.api_key (id, hash, role, tenant_id, is_token, is_read_only) values "
        "(gen_random_uuid(), sha256('" +
        cell.key + "'::bytea), '" + std::string(registry::label(role)) + "', " + tenant +
        (half == Half::reading ? ", true, true)" : ", false, false)"));
    return cell;
  }

  // 0: let through, to whatever the handler says; otherwise the rejection.
  static int expected(const Routes::Entry& route, Role role, Bound bound) {
    if (bound != Bound::no && route.bound_keys == BoundKeys::by_path) {
      if (!has_tenant(route)) return 403;
      if (bound == Bound::other) return 404;
    }
    if (!allows(role, route.access)) return 403;
    return bound != Bound::no && route.access == Access::operators ? 403 : 0;
  }

  static std::string expected_type(const Routes::Entry& route, Role role, int status) {
    if (status == 404) return "unknown-tenant";
    const bool is_for_operators = route.access == Access::operators && has_tenant(route);
    return is_for_operators && allows(role, route.access) ? "operators-only" : "forbidden";
  }

  struct Expected {
    int status = 0;  // 0: the route lets it in
    std::string type;
  };
  void try_cell(const Routes::Entry& route, const Cell& cell, const Expected& expected,
                const std::string& who) {
    ApiServer::Call call{std::string(http::method_name(route.method)), target_of(route, cell.tenant), "",
                         cell.key};
    if (route.method != Method::get) call.body = "{}";
    const Reply response = server->send(call);
    const std::string what = call.method + " " + call.target + " as " + who;
    if (expected.status != 0) {
      EXPECT_EQ(response.status, expected.status) << what;
      EXPECT_EQ(response.at("/type"), "urn:postrider:problem:" + expected.type) << what;
      return;
    }
    EXPECT_NE(response.status, 401) << what;
    EXPECT_NE(response.status, 403) << what;
    EXPECT_LT(response.status, 500) << what;
    if (response.status == 404)
      EXPECT_NE(response.at("/type"), "urn:postrider:problem:unknown-tenant") << what;
  }

  int cells_ = 0;
};

TEST_F(Roles, EveryRouteLetsInWhomItShould) {
  for (const Routes::Entry& route : server->api().routes()) {
    if (route.access == Access::everyone) continue;
    for (const Role role : kRoles)
      for (const Bound bound : kBounds) {
        if (role == Role::customer && bound == Bound::no) continue;  // there are none: see below
        const int wanted = expected(route, role, bound);
        if (wanted == 0 && is_long(route)) continue;
        const Cell cell = make_cell(role, bound);
        const std::string type = wanted == 0 ? "" : expected_type(route, role, wanted);
        try_cell(route, cell, {wanted, type},
                 std::string(registry::label(role)) + ", bound " + std::to_string(static_cast<int>(bound)));
      }
  }
}

TEST_F(Roles, ATokenThatOnlyReadsHasTheReadingHalfOfACustomer) {
  for (const Routes::Entry& route : server->api().routes()) {
    if (route.access == Access::everyone) continue;
    for (const Bound bound : {Bound::own, Bound::other}) {
      const bool is_reading = route.access == Access::read || route.access == Access::authenticated;
      int wanted = expected(route, Role::customer, bound);
      if (wanted == 0 && !is_reading) wanted = 403;
      if (wanted == 0 && is_long(route)) continue;
      const Cell cell = make_cell(Role::customer, bound, Half::reading);
      const std::string type = wanted == 404 ? "unknown-tenant" : wanted == 403 ? "forbidden" : "";
      try_cell(route, cell, {wanted, type},
               "a reading token, bound " + std::to_string(static_cast<int>(bound)));
    }
  }
}

TEST_F(Roles, ACustomerIsAlwaysBound) {
  EXPECT_EQ(post("/v1/keys", R"({"role": "customer"})").pointers(), "/tenant_id ");
  EXPECT_EQ(post("/v1/keys", R"({"role": "customer", "tenant_id": null})").pointers(), "/tenant_id ");
  EXPECT_ANY_THROW(make_cell(Role::customer, Bound::no));
}

// The operations that customers may call. A new route for customers must be added here, too.
TEST_F(Roles, ACustomerUsesTheseOperationsAndNoOthers) {
  const std::set<std::string> wanted = {
      "PATCH /v1/tenants/{tenant}",
      "POST /v1/tenants/{tenant}/contact-secret",
      "POST /v1/tenants/{tenant}/contacts/request-confirmation",
      "POST /v1/tenants/{tenant}/dead-letters/replay",
      "POST /v1/tenants/{tenant}/deliveries/{delivery}/cancel",
      "POST /v1/tenants/{tenant}/deliveries/{delivery}/replay",
      "POST /v1/tenants/{tenant}/deliveries/{delivery}/retry",
      "POST /v1/tenants/{tenant}/endpoints",
      "PUT /v1/tenants/{tenant}/endpoints/{endpoint}",
      "PATCH /v1/tenants/{tenant}/endpoints/{endpoint}",
      "DELETE /v1/tenants/{tenant}/endpoints/{endpoint}",
      "POST /v1/tenants/{tenant}/endpoints/{endpoint}/cancel-pending",
      "POST /v1/tenants/{tenant}/endpoints/{endpoint}/disable",
      "POST /v1/tenants/{tenant}/endpoints/{endpoint}/pause",
      "POST /v1/tenants/{tenant}/endpoints/{endpoint}/resume",
      "GET /v1/tenants/{tenant}/endpoints/{endpoint}/secrets",
      "POST /v1/tenants/{tenant}/endpoints/{endpoint}/secrets/rotate",
      "DELETE /v1/tenants/{tenant}/endpoints/{endpoint}/secrets/{secret}",
      "PUT /v1/tenants/{tenant}/endpoints/{endpoint}/subscriptions",
      "PATCH /v1/tenants/{tenant}/endpoints/{endpoint}/subscriptions/{pattern}",
      "POST /v1/tenants/{tenant}/endpoints/{endpoint}/test",
      "POST /v1/tenants/{tenant}/replays",
      "POST /v1/tenants/{tenant}/replays/{replay}/cancel",
  };
  std::set<std::string> found;
  for (const Routes::Entry& route : server->api().routes()) {
    const bool is_reading = route.access == Access::read || route.access == Access::authenticated;
    if (route.access == Access::everyone || is_reading || !allows(Role::customer, route.access)) continue;
    found.insert(std::string(http::method_name(route.method)) + " " + route.pattern);
  }
  EXPECT_EQ(found, wanted);
}

TEST_F(Roles, WithoutAKeyThereIsNothing) {
  for (const Routes::Entry& route : server->api().routes()) {
    if (route.access == Access::everyone) continue;
    const Reply response =
        server->send({std::string(http::method_name(route.method)), target_of(route, "acme")});
    EXPECT_EQ(response.status, 401) << route.pattern;
  }
}

// The table in docs/access.md: "| `read` | … | yes | yes | yes | no | yes |".
TEST(RoleTable, SaysWhatTheCodeDoes) {
  const std::map<std::string, Access> words{{"`authenticated`", Access::authenticated},
                                            {"`read`", Access::read},
                                            {"`publish`", Access::publish},
                                            {"`customer`", Access::customer},
                                            {"`operate`", Access::operate},
                                            {"`operators`", Access::operators},
                                            {"`administer`", Access::administer}};
  std::ifstream page(std::string(POSTRIDER_SOURCE_DIRECTORY) + "/docs/access.md");
  size_t rows = 0;
  for (std::string line; std::getline(page, line);) {
    std::vector<std::string> cells;
    std::istringstream text(line);
    for (std::string cell; std::getline(text, cell, '|');) {
      const size_t begin = cell.find_first_not_of(' ');
      cells.push_back(
          begin == std::string::npos ? "" : cell.substr(begin, cell.find_last_not_of(' ') + 1 - begin));
    }
    if (cells.size() != 8 || !words.contains(cells[1])) continue;
    ++rows;
    for (size_t i = 0; i < std::size(kRoles); ++i)
      EXPECT_EQ(cells[3 + i], allows(kRoles[i], words.at(cells[1])) ? "yes" : "no") << line;
  }
  EXPECT_EQ(rows, words.size());
}

}  // namespace
}  // namespace postrider::api
