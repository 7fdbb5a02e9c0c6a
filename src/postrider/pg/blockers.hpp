// The open transactions that postrider waits for, for the log and for `postrider doctor`.
#pragma once

#include <string>
#include <vector>

#include "postrider/pg/connection.hpp"

namespace postrider::pg {

// The sessions that hold locks on postrider's tables: "pid 4711 (role shop: outbox)", joined by commas.
// Empty: none. For use after a lock timeout, when the wait itself can no longer be seen. Throws Error.
runtime::Task<std::string> lock_holders(Connection& connection);

struct Blocked {
  int pid = 0;
  std::string service;  // the waiting session's application name
  int by_pid = 0;
  std::string by_role;  // empty: not a session, such as a prepared transaction
  std::string by_service;
};
// The sessions of this role that wait for a lock right now. Throws Error.
runtime::Task<std::vector<Blocked>> blocked_sessions(Connection& connection);

// True if the error is a lock_timeout.
bool is_lock_timeout(const Error& error);

}  // namespace postrider::pg
