#include "postrider/pg/blockers.hpp"

#include "postrider/pg/blockers.sql.hpp"

namespace postrider::pg {

using runtime::Task;

Task<std::string> lock_holders(Connection& connection) {
  const Rows rows = co_await connection.run_one(sql::lock_holders);
  std::string text;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!text.empty()) text += ", ";
    text += "pid " + std::to_string(rows.get<int32_t>(i, 0)) + " (role " + rows.get<std::string>(i, 1) +
            ": " + rows.get<std::string>(i, 2) + ")";
  }
  co_return text;
}

Task<std::vector<Blocked>> blocked_sessions(Connection& connection) {
  const Rows rows = co_await connection.run_one(sql::blocked_sessions);
  std::vector<Blocked> blocked;
  for (size_t i = 0; i < rows.size(); ++i)
    blocked.push_back({rows.get<int32_t>(i, 0), rows.get<std::string>(i, 1), rows.get<int32_t>(i, 2),
                       rows.get<std::string>(i, 3), rows.get<std::string>(i, 4)});
  co_return blocked;
}

bool is_lock_timeout(const Error& error) {
  return error.sqlstate() == "55P03";
}

}  // namespace postrider::pg
