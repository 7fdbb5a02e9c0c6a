#include "postrider/outbox/install.hpp"

#include "postrider/base/check.hpp"
#include "postrider/outbox/install.sql.hpp"
#include "postrider/pg/migrate.hpp"
#include "postrider/sql/migrations.hpp"

namespace postrider::outbox {

namespace {

using runtime::Task;
constexpr pg::Milliseconds kLockTimeout{5'000};

}  // namespace

std::string application_side() {
  for (const pg::Migration& migration : postrider::sql::migrations) {
    const std::string_view text = migration.text;
    const size_t begin = text.find("do $application_side_begins$");
    const size_t end = text.find("do $application_side_ends$");
    if (begin != std::string_view::npos && end != std::string_view::npos && begin < end)
      return std::string(text.substr(begin, end - begin));
  }
  CHECK(false);
  return {};
}

Task<std::optional<std::string>> relay_obstacle(runtime::Loop& loop, std::string url) {
  pg::ConnectOptions options;
  options.url = std::move(url);
  options.application_name = "postrider relay";
  const auto connection = co_await pg::Connection::open(loop, options);
  const auto rows = co_await connection->run(sql::outbox_here{});
  if (rows.empty()) co_return "There is no outbox in this database: `postrider outbox install` creates it.";
  if (rows.front().may_move) co_return std::nullopt;
  const std::string role(rows.front().role);
  co_return "The role " + role + " may not relay this outbox: grant postrider_relay to " + role + ".";
}

std::string MissingRoles::listed() const {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

Task<MissingRoles> missing_roles(pg::Connection& connection) {
  const auto rows = co_await connection.run(sql::missing_roles{});
  MissingRoles missing;
  std::vector<std::string> grants;
  for (const auto& row : rows) {
    missing.names.emplace_back(row.name);
    missing.statements.append(row.creation).append(" ");
    if (grants.empty() || grants.back() != row.grants) grants.emplace_back(row.grants);
  }
  for (const std::string& grant : grants) missing.statements += grant + " ";
  if (!missing.statements.empty()) missing.statements.pop_back();
  co_return missing;
}

Task<MissingRoles> install(runtime::Loop& loop, std::string url) {
  pg::ConnectOptions options = pg::migrating(std::move(url));
  options.application_name = "postrider outbox install";
  options.lock_timeout = kLockTimeout;
  const auto connection = co_await pg::Connection::open(loop, options);
  const auto own = co_await connection->run(sql::is_postriders_own{});
  if (own.front().is_own)
    throw pg::Error(pg::Kind::other, "this is postrider's own database: it already has an outbox");
  pg::Transaction transaction = co_await connection->begin();
  co_await transaction.run(sql::create_schema{}, sql::create_relay_role{});
  co_await transaction.script(application_side());
  co_await transaction.commit();
  co_return co_await missing_roles(*connection);
}

}  // namespace postrider::outbox
