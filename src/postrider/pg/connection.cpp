#include "postrider/pg/connection.hpp"

#include "postrider/pg/session.hpp"
#include "postrider/pg/session.sql.hpp"

namespace postrider::pg {

namespace {

using runtime::Task;

// Once per connection, so not worth a name on the server.
constexpr Statement unnamed(Statement statement) {
  return {nullptr, statement.text};
}

Batch session_setup(const ConnectOptions& options) {
  const auto milliseconds = [](Milliseconds value) { return std::to_string(value.count()); };
  std::vector<std::string_view> names{"default_transaction_isolation",
                                      "statement_timeout",
                                      "idle_in_transaction_session_timeout",
                                      "lock_timeout",
                                      "plan_cache_mode",
                                      "enable_seqscan",
                                      "jit",
                                      "search_path",
                                      "timezone"};
  std::vector<std::string> values{"read committed",
                                  milliseconds(options.statement_timeout),
                                  milliseconds(options.idle_in_transaction_timeout),
                                  milliseconds(options.lock_timeout),
                                  options.plan_cache_mode,
                                  options.enable_seqscan ? "on" : "off",
                                  "off",
                                  options.search_path,
                                  "UTC"};
  if (options.synchronous_commit) {
    names.push_back("synchronous_commit");
    values.push_back(*options.synchronous_commit);
  }
  const sql::apply_settings apply{.names = names, .settings = values};
  Batch batch(unnamed(sql::apply_settings::statement), apply.params());
  batch.add(unnamed(sql::ask_server::statement));
  return batch;
}

UnitPtr unit_of(Batch batch) {
  auto unit = std::make_shared<Unit>(Unit::Work::batch);
  unit->batch = std::move(batch);
  return unit;
}

UnitPtr unit_of(std::string sql, Params params) {
  auto unit = std::make_shared<Unit>(Unit::Work::batch);
  unit->sql = std::move(sql);
  unit->batch.add({nullptr, unit->sql.c_str()}, std::move(params));
  return unit;
}

// Notifies the session if the waiting coroutine is destroyed before its result arrives.
struct Waiter {
  Unit& unit;
  ~Waiter() { unit.is_abandoned = true; }
};

Task<std::vector<Rows>> answer(UnitPtr unit) {
  const Waiter waiter{*unit};
  co_await unit->done;
  if (unit->error) throw Error(*unit->error);
  co_return std::move(unit->rows);
}

Task<Rows> only_result(UnitPtr unit) {
  const Waiter waiter{*unit};
  co_await unit->done;
  if (unit->error) throw Error(*unit->error);
  co_return std::move(unit->rows.front());
}

Task<void> ended(UnitPtr unit, std::string_view command) {
  const Waiter waiter{*unit};
  co_await unit->done;
  if (unit->error) throw Error(*unit->error);
  // COMMIT of a failed transaction succeeds, as a ROLLBACK.
  if (unit->rows.front().command() != command)
    throw Error(Kind::other, "rolled back: an earlier statement of the transaction failed");
}

Task<void> nothing_to_end() {
  co_return;
}

}  // namespace

ConnectOptions ConnectOptions::engine(std::string url) {
  ConnectOptions options;
  options.url = std::move(url);
  options.plan_cache_mode = "force_generic_plan";
  options.enable_seqscan = false;
  return options;
}

Connection::Connection(runtime::Loop& loop, ConnectOptions options)
    : session_(std::make_shared<Session>(loop, std::move(options))) {}

Task<void> Connection::connect() {
  const std::shared_ptr<Session> session = session_;
  session->set_connect_deadline();
  co_await answer(session->connect());
  if (session->options().is_session_ours) {
    try {
      const std::vector<Rows> rows = co_await run(session_setup(session->options()));
      const auto server = sql::ask_server::Row::read(rows[1], 0);
      session->server.timeline = server.timeline;
      session->server.backend = Backend{session->server.backend_pid, server.backend_started_at};
    } catch (const Error& error) {
      session->fail_if_open("cannot set up the session");
      throw Error(Kind::unavailable, std::string("cannot set up the session: ") + error.what());
    }
  }
  session->end_connect_deadline();
}

Task<std::unique_ptr<Connection>> Connection::open(runtime::Loop& loop, ConnectOptions options) {
  auto connection = std::make_unique<Connection>(loop, std::move(options));
  co_await connection->connect();
  co_return std::move(connection);
}

Connection::~Connection() {
  session_->abandon();
}

Task<std::vector<Rows>> Connection::run(Batch batch) {
  UnitPtr unit = unit_of(std::move(batch));
  session_->submit(unit);
  return answer(std::move(unit));
}

Task<Rows> Connection::run_one(Statement statement, Params params) {
  UnitPtr unit = unit_of(Batch(statement, std::move(params)));
  session_->submit(unit);
  return only_result(std::move(unit));
}

Task<Rows> Connection::execute(std::string sql, Params params) {
  UnitPtr unit = unit_of(std::move(sql), std::move(params));
  session_->submit(unit);
  return only_result(std::move(unit));
}

Task<Transaction> Connection::begin() {
  const std::shared_ptr<Session> session = session_;
  auto unit = std::make_shared<Unit>(Unit::Work::turn);
  session->submit(unit);
  co_await answer(std::move(unit));
  co_return Transaction(session);
}

bool Connection::is_open() const {
  return session_->is_open();
}
const ServerInfo& Connection::server() const {
  return session_->server;
}
size_t Connection::in_flight() const {
  return session_->in_flight();
}
size_t Connection::waiting() const {
  return session_->waiting();
}

void Connection::on_closed(base::UniqueFunction<void(const Error&)> callback) {
  session_->on_closed = std::move(callback);
}

void Connection::on_notification(base::UniqueFunction<void(std::string_view, std::string_view)> callback) {
  session_->on_notification = std::move(callback);
}

void Connection::close() {
  session_->fail_if_open("connection closed");
}

void Connection::close_if_stuck() {
  session_->fail_if_stuck();
}

Transaction& Transaction::operator=(Transaction&& other) noexcept {
  std::swap(session_, other.session_);
  return *this;
}

Transaction::~Transaction() {
  if (!session_) return;
  session_->end_turn(session_->is_begun() ? unit_of("rollback", Params()) : nullptr);
}

Task<std::vector<Rows>> Transaction::run(Batch batch) {
  UnitPtr unit = unit_of(std::move(batch));
  session_->submit_in_turn(unit);
  return answer(std::move(unit));
}

Task<Rows> Transaction::run_one(Statement statement, Params params) {
  UnitPtr unit = unit_of(Batch(statement, std::move(params)));
  session_->submit_in_turn(unit);
  return only_result(std::move(unit));
}

Task<Rows> Transaction::execute(std::string sql, Params params) {
  UnitPtr unit = unit_of(std::move(sql), std::move(params));
  session_->submit_in_turn(unit);
  return only_result(std::move(unit));
}

Task<void> Transaction::script(std::string sql) {
  auto unit = std::make_shared<Unit>(Unit::Work::script);
  unit->sql = std::move(sql);
  session_->submit_in_turn(unit);
  co_await answer(std::move(unit));
}

Task<void> Transaction::commit() {
  const std::shared_ptr<Session> session = std::exchange(session_, nullptr);
  UnitPtr unit = session->is_begun() ? unit_of("commit", Params()) : nullptr;
  session->end_turn(unit);
  return unit ? ended(std::move(unit), "COMMIT") : nothing_to_end();
}

Task<void> Transaction::rollback() {
  const std::shared_ptr<Session> session = std::exchange(session_, nullptr);
  UnitPtr unit = session->is_begun() ? unit_of("rollback", Params()) : nullptr;
  session->end_turn(unit);
  return unit ? ended(std::move(unit), "ROLLBACK") : nothing_to_end();
}

}  // namespace postrider::pg
