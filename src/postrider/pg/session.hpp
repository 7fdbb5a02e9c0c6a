// The internals of a Connection: libpq in pipeline mode on a socket, and the queue in front of it.
//
// Work is a Unit: messages under one sync. Units wait in `waiting_` for their turn, are sent in order, and
// stay in `sent_` until libpq has returned their sync. Completed units move to `finished_`, and their waiters
// are resumed last, when the session is consistent: they may send more or destroy the Connection.
#pragma once

#include <libpq-fe.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "postrider/pg/connection.hpp"

namespace postrider::pg {

// A statement as prepared on this connection.
struct Prepared {
  std::string server_name;
  std::vector<Oid> types;
  bool is_ready = false;       // the server has confirmed it
  std::optional<Error> error;  // it has rejected it
};

// The name of a statement on the server has a hash of its text and parameter types. Behind a pooler the
// sessions of two versions of postrider can share a connection to the server, and each must execute its own.
std::string server_name_of(const Statement& statement, const std::vector<Oid>& types);

struct Unit {
  enum class Work { batch, prepare, script, turn };

  explicit Unit(Work what) : work(what) {}

  Work work;
  Batch batch;
  std::string sql;                 // of a script, or of the one unnamed statement in the batch
  bool is_opening = false;         // BEGIN goes first
  std::shared_ptr<Prepared> made;  // by a prepare
  std::vector<std::shared_ptr<Prepared>> relied_on;  // sent, but not confirmed when the batch was sent

  size_t answers = 0;
  std::vector<Rows> rows;
  std::optional<Error> error;
  runtime::OneShot<bool> done;
  bool is_abandoned = false;  // the waiting coroutine is gone
};
using UnitPtr = std::shared_ptr<Unit>;

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(runtime::Loop& loop, ConnectOptions options);
  ~Session();

  // Once, before anything else; done when the connection is usable but not yet set up.
  UnitPtr connect();
  void set_connect_deadline();
  void end_connect_deadline() { deadline_.cancel(); }

  void submit(UnitPtr unit);
  // Inside a transaction: ahead of everything that waits.
  void submit_in_turn(UnitPtr unit);
  bool is_begun() const { return is_begun_; }
  // Ends the turn that a `turn` unit was given; `last` is COMMIT or ROLLBACK, or empty when nothing was
  // begun.
  void end_turn(UnitPtr last);

  void fail(Error reason);
  void fail_if_open(const char* reason);
  void fail_if_stuck();  // see Connection::close_if_stuck()
  // Clears the callback; the waiters are resumed from the loop.
  void abandon();

  bool is_open() const { return conn_ != nullptr && !connecting_; }
  size_t in_flight() const { return sent_.size(); }
  size_t waiting() const { return waiting_.size(); }
  PGconn* conn() const { return conn_; }
  const ConnectOptions& options() const { return options_; }

  ServerInfo server;
  base::UniqueFunction<void(const Error&)> on_closed;
  base::UniqueFunction<void(std::string_view, std::string_view)> on_notification;

 private:
  using ResultPtr = std::unique_ptr<PGresult, decltype(&PQclear)>;
  using Descriptor = boost::asio::posix::basic_stream_descriptor<boost::asio::io_context::executor_type>;

  // connect.cpp
  void poll_connect();
  void wait_connect(Descriptor::wait_type what);
  void established();

  // send.cpp
  void pump();
  void send(const UnitPtr& unit);
  bool send_items(Unit& unit);
  bool send_item(const Batch::Item& item);
  bool is_prepared(const Statement& statement) const {
    return statement.name != nullptr && options_.keeps_statements;
  }
  bool prepare(const Batch::Item& item, Unit& user);
  void start_script();
  void flush();

  // receive.cpp
  void wait_readable();
  void on_readable();
  void read();
  void receive();
  void take(ResultPtr result);
  void take_error(Unit& unit, const PGresult* result);
  void complete();
  void complete_script();
  void take_notifications();
  void watch_response();
  void check_response();

  void close_socket();
  void deliver();
  void deliver_soon();
  Error lost(const char* fallback) const;
  Error rejected() const;

  runtime::Loop& loop_;
  ConnectOptions options_;
  PGconn* conn_ = nullptr;
  Descriptor socket_;
  bool is_waiting_to_write_ = false;

  UnitPtr connecting_;
  std::deque<UnitPtr> waiting_;
  std::deque<UnitPtr> sent_;
  std::deque<UnitPtr> finished_;
  UnitPtr script_;         // of the transaction, until it can be sent
  bool is_taken_ = false;  // by a transaction
  bool is_begun_ = false;  // its BEGIN was sent
  bool is_script_running_ = false;
  bool is_demoted_ = false;
  std::optional<Error> closed_by_;
  bool is_delivery_posted_ = false;

  std::unordered_map<std::string_view, std::shared_ptr<Prepared>> prepared_;
  size_t prepared_again_ = 0;

  runtime::Timer deadline_;  // of connecting
  runtime::Timer response_timer_;
  runtime::SteadyTime last_progress_{};

  // Reused for each statement.
  std::vector<const char*> values_;
  std::vector<int> lengths_;
  std::vector<int> formats_;
  std::vector<Oid> types_;
};

}  // namespace postrider::pg
