// Puts the application's side of the outbox (table, publish() and emit(), roles) into another database. It may
// be run again: that is how it is updated.
#pragma once

#include <string>

#include "postrider/pg/connection.hpp"

namespace postrider::outbox {

// Throws pg::Error; Error(other) with a sentence when this is a database of postrider itself.
runtime::Task<void> install(runtime::Loop& loop, std::string url);

// Whether it is there. Throws pg::Error.
runtime::Task<bool> is_installed(runtime::Loop& loop, std::string url);

// The part of the migration that belongs there.
std::string application_side();

}  // namespace postrider::outbox
