#include "postrider/pg/blockers.hpp"

#include "postrider/pg/blockers.sql.hpp"

namespace postrider::pg {

using runtime::Task;

Task<std::string> lock_holders(Connection& connection) {
  const auto rows = co_await connection.run(sql::lock_holders{});
  std::string text;
  for (const auto& row : rows) {
    if (!text.empty()) text += ", ";
    text.append("pid ").append(std::to_string(row.pid)).append(" (role ").append(row.role);
    text.append(": ").append(row.tables).append(")");
  }
  co_return text;
}

Task<std::vector<Blocked>> blocked_sessions(Connection& connection) {
  const auto rows = co_await connection.run(sql::blocked_sessions{});
  std::vector<Blocked> blocked;
  for (const auto& row : rows)
    blocked.push_back({row.pid, std::string(row.application_name), row.holder_pid,
                       std::string(row.holder_role), std::string(row.holder_application)});
  co_return blocked;
}

bool is_lock_timeout(const Error& error) {
  return error.sqlstate() == "55P03";
}

}  // namespace postrider::pg
