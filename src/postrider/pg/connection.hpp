// One Postgres connection on one loop, in pipeline mode. Batches are sent in the order of the calls, and
// their results arrive in that order; an error rolls back its own batch only. Used on the loop's thread only.
//
// connect() and begin() start when they are awaited. All others send at the call, and awaiting waits for the
// result; a task that is destroyed before does not take its batch back. A failed task throws pg::Error. When
// the connection is lost, batches that were sent fail with Kind::unknown and the others with
// Kind::unavailable. Then only is_open() and destruction are allowed (pg::Link reconnects).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/base/unique_function.hpp"
#include "postrider/pg/batch.hpp"
#include "postrider/pg/connect_options.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/pg/rows.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::pg {

class Session;

// A process of the server. Its process ID alone can later belong to another process.
struct Backend {
  int pid = 0;
  base::Timestamp started_at{};
};

// Properties that the server reported when the connection was opened.
struct ServerInfo {
  int version = 0;  // 150020
  int backend_pid = 0;
  std::optional<Backend> backend;  // none behind a pooler, where it is a different one for each transaction
  // First 8 hex digits of the current WAL file: changes when a standby was promoted. Empty behind a pooler.
  std::string timeline;
};

// An explicit transaction over several round trips. While it is open, other batches of the connection wait:
// keep it short. Destroyed without commit() it is rolled back, and the connection is clean for the next
// batch.
class Transaction {
 public:
  Transaction(Transaction&&) noexcept = default;
  Transaction& operator=(Transaction&& other) noexcept;
  ~Transaction();

  runtime::Task<std::vector<Rows>> run(Batch batch);
  runtime::Task<Rows> run_one(Statement statement, Params params = Params());
  template <Query S>
  Reply<S> run(const S& query) {
    return Reply<S>(run_one(S::statement, query.params()));
  }
  template <Query... S>
    requires(sizeof...(S) > 1)
  Replies<S...> run(const S&... queries) {
    return Replies<S...>(run(Batch::of(queries...)));
  }
  runtime::Task<Rows> execute(std::string sql, Params params = Params());
  // Any number of statements separated by semicolons, without parameters and without rows back: migrations.
  // Not while another result of the transaction is outstanding.
  runtime::Task<void> script(std::string sql);
  // Throws if an earlier statement of the transaction failed; the transaction is then rolled back.
  runtime::Task<void> commit();
  runtime::Task<void> rollback();

 private:
  friend class Connection;
  explicit Transaction(std::shared_ptr<Session> session) : session_(std::move(session)) {}
  std::shared_ptr<Session> session_;  // empty once finished or moved from
};

class Connection {
 public:
  Connection(runtime::Loop& loop, ConnectOptions options);
  // Once. Throws Error(unavailable) if the server cannot be reached in time or rejects the connection, or if
  // close() is called. Resolves host names in the calling thread; use an address or a socket directory where
  // that matters.
  runtime::Task<void> connect();
  // Both in one.
  static runtime::Task<std::unique_ptr<Connection>> open(runtime::Loop& loop, ConnectOptions options);

  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // One Rows per statement, in order.
  runtime::Task<std::vector<Rows>> run(Batch batch);
  runtime::Task<Rows> run_one(Statement statement, Params params = Params());
  template <Query S>
  Reply<S> run(const S& query) {
    return Reply<S>(run_one(S::statement, query.params()));
  }
  template <Query... S>
    requires(sizeof...(S) > 1)
  Replies<S...> run(const S&... queries) {
    return Replies<S...>(run(Batch::of(queries...)));
  }
  // Waits its turn like a batch; BEGIN travels with the first batch of the transaction.
  runtime::Task<Transaction> begin();
  // One statement that is not worth preparing.
  runtime::Task<Rows> execute(std::string sql, Params params = Params());

  bool is_open() const;
  const ServerInfo& server() const;
  // Batches sent without a result yet, and batches not sent.
  size_t in_flight() const;
  size_t waiting() const;

  // Called once, on the loop, when the connection is lost or closed; not from the destructor.
  void on_closed(base::UniqueFunction<void(const Error&)> callback);
  void on_notification(
      base::UniqueFunction<void(std::string_view channel, std::string_view payload)> callback);
  // Fails the batches in flight.
  void close();
  // The same if batches are in flight and no result has arrived that was not read yet: this process may have
  // been the one that was suspended.
  void close_if_stuck();

 private:
  std::shared_ptr<Session> session_;  // shared with pending socket waits and with transactions
};

}  // namespace postrider::pg
