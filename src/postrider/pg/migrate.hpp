// Upgrades the schema to the version that this binary knows. Forward only; any number of nodes may start at
// once. A schema that a newer binary has upgraded is left as it is: each migration records the oldest binary
// that runs on its result, so that nodes can be upgraded one at a time.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "postrider/pg/connection.hpp"

namespace postrider::pg {

// Embedded from sql/migrations/NNNN_name.sql, in order of version, without gaps, by tools/embed_sql.py.
struct Migration {
  int version;
  const char* name;
  const char* text;
  int oldest_binary;  // a binary that knows at least this version runs on the result
};

struct MigrateOptions {
  std::span<const Migration> migrations;
  std::string postrider_version;
  int buckets = 256;  // replaces {{buckets}}; cannot change once the schema exists
  Milliseconds lock_timeout{5'000};
  // How long a migration is retried while other transactions hold the locks that it needs.
  Milliseconds patience{600'000};
};

struct MigrateReport {
  int version_before = 0;  // 0: there was no schema
  int version = 0;         // greater than the known versions: a newer binary has upgraded the schema
  std::vector<std::string> applied;  // names
};

inline constexpr int server_version_min = 140000;

// Needs a connection of its own with statement_timeout and response_timeout off (migrating() below), as a
// role that owns the database or the schema `postrider`. Each migration is one transaction, under a lock that
// only this role can take. Throws
// Error(other) with a message for the operator when the server is too old, or when the schema is too new for
// this binary.
runtime::Task<MigrateReport> migrate(Connection& connection, MigrateOptions options);

ConnectOptions migrating(std::string url);

}  // namespace postrider::pg
