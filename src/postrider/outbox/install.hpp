// Puts the application's side of the outbox (table, publish() and emit(), roles) in another database. It
// may be run again: that is how it is updated.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "postrider/pg/connection.hpp"

namespace postrider::outbox {

// Roles to grant that do not exist, because the role that installed the schema is not allowed to create
// roles.
struct MissingRoles {
  std::vector<std::string> names;
  std::string statements;  // create them and give them their rights; for an administrator, in this database
  std::string listed() const;
};
runtime::Task<MissingRoles> missing_roles(pg::Connection& connection);

// Throws pg::Error; Error(other) with a sentence when this is a database of postrider itself.
runtime::Task<MissingRoles> install(runtime::Loop& loop, std::string url);

// The reason why a relay cannot work there: the outbox is not installed, or the role has no right to it.
// Throws pg::Error if the database cannot be reached.
runtime::Task<std::optional<std::string>> relay_obstacle(runtime::Loop& loop, std::string url);

// The part of the migration that belongs there.
std::string application_side();

}  // namespace postrider::outbox
