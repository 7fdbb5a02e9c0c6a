#pragma once

#include <string>

#include "support/sync_sql.hpp"

namespace postrider::support {

// Number of buckets that test databases are made with.
inline constexpr int buckets = 16;

// A database for one test: a clone of a template that is migrated once per process. Dropped with the object.
class Database {
 public:
  enum class Schema { migrated, none };
  explicit Database(Schema schema = Schema::migrated);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  const std::string& name() const { return name_; }
  std::string url() const;  // as the owner, who is no superuser
  std::string superuser_url() const;

  std::string sql(const std::string& text) { return owner_(text); }
  void wait_for(const std::string& sql, const std::string& wanted) { owner_.wait_for(sql, wanted); }

 private:
  std::string name_;
  SyncSql owner_;
};

}  // namespace postrider::support
