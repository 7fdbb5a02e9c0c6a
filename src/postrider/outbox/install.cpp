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
    const size_t end = text.find("do $application_side_ends$");
    if (end != std::string_view::npos) return std::string(text.substr(0, end));
  }
  CHECK(false);
  return {};
}

Task<std::string> relay_obstacle(runtime::Loop& loop, std::string url) {
  pg::ConnectOptions options;
  options.url = std::move(url);
  options.application_name = "postrider relay";
  auto opening = pg::Connection::open(loop, options);
  const auto connection = co_await opening;
  const auto rows = co_await connection->run_one(sql::outbox_here);
  if (rows.empty())
    co_return "There is no outbox in this database: `postrider outbox install` puts it there.";
  if (rows.get<bool>(0, 0)) co_return std::string();
  const auto role = rows.get<std::string>(0, 1);
  co_return "The role " + role + " may not move the rows of this outbox: grant postrider_relay to " + role +
      ".";
}

std::string MissingRoles::listed() const {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

Task<MissingRoles> missing_roles(pg::Connection& connection) {
  const pg::Rows rows = co_await connection.run_one(sql::missing_roles);
  MissingRoles missing;
  std::vector<std::string> grants;
  for (size_t i = 0; i < rows.size(); ++i) {
    missing.names.push_back(rows.get<std::string>(i, 0));
    missing.statements += rows.get<std::string>(i, 1) + " ";
    std::string grant = rows.get<std::string>(i, 2);
    if (grants.empty() || grants.back() != grant) grants.push_back(std::move(grant));
  }
  for (const std::string& grant : grants) missing.statements += grant + " ";
  if (!missing.statements.empty()) missing.statements.pop_back();
  co_return missing;
}

Task<MissingRoles> install(runtime::Loop& loop, std::string url) {
  pg::ConnectOptions options = pg::migrating(std::move(url));
  options.application_name = "postrider outbox install";
  options.lock_timeout = kLockTimeout;
  auto opening = pg::Connection::open(loop, options);
  const auto connection = co_await opening;
  const auto own = co_await connection->run_one(sql::is_postriders_own);
  if (own.get<bool>(0, 0))
    throw pg::Error(pg::Kind::other, "this is a database of postrider itself: its outbox is there already");
  pg::Batch first;
  first.add(sql::create_schema).add(sql::make_relay_role);
  auto beginning = connection->begin();
  pg::Transaction transaction = co_await beginning;
  co_await transaction.run(std::move(first));
  auto script = transaction.script(application_side());
  co_await script;
  co_await transaction.commit();
  auto looking = missing_roles(*connection);
  co_return co_await looking;
}

}  // namespace postrider::outbox
