// Puts the application's side of the outbox (table, publish() and emit(), roles) into another database. It
// may be run again: that is how it is updated.
#pragma once

#include <string>

#include "postrider/pg/connection.hpp"

namespace postrider::outbox {

// Throws pg::Error; Error(other) with a sentence when this is a database of postrider itself.
runtime::Task<void> install(runtime::Loop& loop, std::string url);

// Why a relay cannot work there: it is not installed, or the role has no right to it. Empty: it can. Throws
// pg::Error when the database cannot be reached.
runtime::Task<std::string> relay_obstacle(runtime::Loop& loop, std::string url);

// The part of the migration that belongs there.
std::string application_side();

}  // namespace postrider::outbox
