#pragma once

#include <memory>
#include <string>

struct pg_conn;

namespace postrider::support {

// A blocking connection for setting tests up and for looking at the outcome, like `psql -At`.
class SyncSql {
 public:
  explicit SyncSql(std::string url);

  // Runs one or more statements; returns the rows of the last one, a line each, columns separated by '|',
  // null empty. Throws std::runtime_error with the server's message. Connects again after a loss.
  std::string operator()(const std::string& sql);
  // Waits until the query returns `wanted`; throws after a minute.
  void wait_for(const std::string& sql, const std::string& wanted);

 private:
  struct Finish {
    void operator()(pg_conn* conn) const;
  };
  void connect();

  std::string url_;
  std::unique_ptr<pg_conn, Finish> conn_;
};

}  // namespace postrider::support
