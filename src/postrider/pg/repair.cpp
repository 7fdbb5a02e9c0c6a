#include "postrider/pg/repair.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "postrider/pg/repair.sql.hpp"

namespace postrider::pg {

namespace {

using runtime::Task;

// Already exists: a table, index or view; a constraint, trigger or type; a function; the schema; a primary
// key; an identity column; an attached partition. And lz4, where the server is built without it.
constexpr std::array<std::string_view, 8> kIsThere{"42P07", "42710", "42723", "42P06",
                                                   "42P16", "55000", "42809", "0A000"};

Task<bool> make(Connection& connection, std::string statement) {
  try {
    Transaction transaction = co_await connection.begin();
    co_await transaction.script(std::move(statement));
    co_await transaction.commit();
  } catch (const Error& error) {
    if (std::find(kIsThere.begin(), kIsThere.end(), error.sqlstate()) == kIsThere.end()) throw;
    co_return false;
  }
  co_return true;
}

}  // namespace

Task<std::vector<std::string>> missing_tables(Connection& connection, std::span<const char* const> tables) {
  std::vector<std::string> names(tables.begin(), tables.end());
  const auto rows = co_await connection.run(sql::missing_tables{.names = names});
  std::vector<std::string> missing;
  for (const auto& row : rows) missing.emplace_back(row.name);
  co_return missing;
}

Task<std::vector<std::string>> repair(Connection& connection, std::span<const char* const> statements) {
  std::vector<std::string> made;
  for (const char* statement : statements) {
    const std::string text = statement;
    const bool is_made = co_await make(connection, "set local lock_timeout = '5s';\n" + text);
    // Settings of columns are only repeated.
    if (is_made && text.starts_with("CREATE ")) made.push_back(text.substr(0, text.find_first_of("\n(")));
  }
  co_return made;
}

}  // namespace postrider::pg
