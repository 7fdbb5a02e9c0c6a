// Makes again what is missing of a schema, after somebody or something has dropped tables: from a dump of the
// whole schema, of which everything that is there is left alone. What was in the tables does not come back.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "postrider/pg/connection.hpp"

namespace postrider::pg {

// Of the tables in the schema `postrider` that there should be.
runtime::Task<std::vector<std::string>> missing_tables(Connection& connection,
                                                       std::span<const char* const> tables);

// Each statement is a transaction of its own, so an interrupted repair is simply run again. Returns the first
// line of those that made something. Throws Error.
runtime::Task<std::vector<std::string>> repair(Connection& connection,
                                               std::span<const char* const> statements);

}  // namespace postrider::pg
