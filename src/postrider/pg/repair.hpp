// Recreates the missing parts of a schema after tables were dropped, from a dump of the whole schema.
// Existing objects are not touched, and the rows of dropped tables are not restored.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "postrider/pg/connection.hpp"

namespace postrider::pg {

// The expected tables of the schema `postrider`.
runtime::Task<std::vector<std::string>> missing_tables(Connection& connection,
                                                       std::span<const char* const> tables);

// Each statement is a transaction of its own, so an interrupted repair is simply run again. Returns the first
// line of each statement that created something. Throws Error.
runtime::Task<std::vector<std::string>> repair(Connection& connection,
                                               std::span<const char* const> statements);

}  // namespace postrider::pg
