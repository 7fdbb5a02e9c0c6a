// Every route × every role × (unbound, bound to the tenant, bound to another): who gets past the door.
#include <fstream>
#include <map>
#include <sstream>

#include "postrider/api/pgtest_fixture.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/registry/keys.hpp"

namespace postrider::api {
namespace {

using registry::Role;

constexpr Role kRoles[] = {Role::admin, Role::operator_, Role::publisher, Role::reader};
enum class Bound { no, own, other };
constexpr Bound kBounds[] = {Bound::no, Bound::own, Bound::other};

// Answers that do not end by themselves, or only after a while: asked only where they must be refused.
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
  Cell make_cell(Role role, Bound bound) {
    const std::string number = std::to_string(++cells_);
    Cell cell{"t" + number, "cell-" + number + std::string(32, 'x')};
    database.sql("insert into postrider.tenant (id) values ('" + cell.tenant + "'), ('o" + number + "')");
    const std::string tenant = bound == Bound::no    ? "null"
                               : bound == Bound::own ? "'" + cell.tenant + "'"
                                                     : "'o" + number + "'";
    database.sql(
        "insert into postrider.api_key (id, hash, role, tenant_id) values (gen_random_uuid(), sha256('" +
        cell.key + "'::bytea), '" + std::string(registry::label(role)) + "', " + tenant + ")");
    return cell;
  }

  // 0: let through, to whatever the handler says; otherwise the refusal.
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

  int cells_ = 0;
};

TEST_F(Roles, EveryRouteLetsInWhomItShould) {
  for (const Routes::Entry& route : server->api().routes()) {
    if (route.access == Access::everyone) continue;
    for (const Role role : kRoles)
      for (const Bound bound : kBounds) {
        const int wanted = expected(route, role, bound);
        if (wanted == 0 && is_long(route)) continue;
        const Cell cell = make_cell(role, bound);
        ApiServer::Call call{std::string(http::method_name(route.method)), target_of(route, cell.tenant), "",
                             cell.key};
        if (route.method != Method::get) call.body = "{}";
        const Answer answer = server->send(call);
        const std::string what = call.method + " " + call.target + " as " +
                                 std::string(registry::label(role)) + ", bound " +
                                 std::to_string(static_cast<int>(bound));
        if (wanted != 0) {
          EXPECT_EQ(answer.status, wanted) << what;
          EXPECT_EQ(answer.at("/type"), "urn:postrider:problem:" + expected_type(route, role, wanted))
              << what;
        } else {
          EXPECT_NE(answer.status, 401) << what;
          EXPECT_NE(answer.status, 403) << what;
          EXPECT_LT(answer.status, 500) << what;
          if (answer.status == 404)
            EXPECT_NE(answer.at("/type"), "urn:postrider:problem:unknown-tenant") << what;
        }
      }
  }
}

TEST_F(Roles, WithoutAKeyThereIsNothing) {
  for (const Routes::Entry& route : server->api().routes()) {
    if (route.access == Access::everyone) continue;
    const Answer answer =
        server->send({std::string(http::method_name(route.method)), target_of(route, "acme")});
    EXPECT_EQ(answer.status, 401) << route.pattern;
  }
}

// The table in docs/access.md: "| `read` | … | yes | yes | no | yes |".
TEST(RoleTable, SaysWhatTheCodeDoes) {
  const std::map<std::string, Access> words{{"`authenticated`", Access::authenticated},
                                            {"`read`", Access::read},
                                            {"`publish`", Access::publish},
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
    if (cells.size() != 7 || !words.contains(cells[1])) continue;
    ++rows;
    for (size_t i = 0; i < std::size(kRoles); ++i)
      EXPECT_EQ(cells[3 + i], allows(kRoles[i], words.at(cells[1])) ? "yes" : "no") << line;
  }
  EXPECT_EQ(rows, words.size());
}

}  // namespace
}  // namespace postrider::api
