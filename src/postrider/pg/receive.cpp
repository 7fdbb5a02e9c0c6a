// The receiving half of a session: a permanent reader.
#include "postrider/base/check.hpp"
#include "postrider/pg/session.hpp"

namespace postrider::pg {

namespace {

std::string field(const PGresult* result, int code) {
  const char* text = PQresultErrorField(result, code);
  return text == nullptr ? "" : text;
}

// The detail is left out: it quotes rows, and messages go to logs.
Error::Report report_of(const PGresult* result, const char* statement) {
  Error::Report report;
  report.sqlstate = field(result, PG_DIAG_SQLSTATE);
  report.constraint = field(result, PG_DIAG_CONSTRAINT_NAME);
  report.message = field(result, PG_DIAG_MESSAGE_PRIMARY);
  if (report.message.empty()) report.message = PQresultErrorMessage(result);
  report.message += " (" + report.sqlstate;
  if (statement != nullptr) report.message.append(", ").append(statement);
  report.message += ")";
  return report;
}

// The server no longer has the statement (26000), or its plan's columns have changed under it.
bool is_statement_stale(const PGresult* result, const std::string& sqlstate) {
  return sqlstate == "26000" ||
         (sqlstate == "0A000" && field(result, PG_DIAG_SOURCE_FUNCTION) == "RevalidateCachedQuery");
}

}  // namespace

void Session::wait_readable() {
  socket_.async_wait(Descriptor::wait_read,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       if (error || self->conn_ == nullptr) return;
                       self->on_readable();
                     });
}

void Session::on_readable() {
  last_progress_ = base::BootClock::now();
  read();
  if (conn_ != nullptr) wait_readable();
  deliver();
}

void Session::read() {
  const bool is_alive = PQconsumeInput(conn_) == 1;
  // Even after a loss there may be results in the buffer.
  receive();
  if (conn_ != nullptr) take_notifications();
  if (conn_ != nullptr && (!is_alive || PQstatus(conn_) == CONNECTION_BAD)) fail(lost("connection lost"));
  if (conn_ != nullptr) flush();
  if (conn_ != nullptr) start_script();
  if (conn_ != nullptr) pump();
}

void Session::receive() {
  bool was_null = false;
  while (conn_ != nullptr && !sent_.empty() && PQisBusy(conn_) == 0) {
    ResultPtr result(PQgetResult(conn_), &PQclear);
    if (result) {
      was_null = false;
      take(std::move(result));
    } else if (is_script_running_) {
      complete_script();
    } else if (std::exchange(was_null, true)) {
      // Each result ends with one null; two mean that libpq expects nothing more.
      return fail(lost("the connection is out of step"));
    }
  }
}

void Session::take(ResultPtr result) {
  Unit& unit = *sent_.front();
  switch (PQresultStatus(result.get())) {
    case PGRES_PIPELINE_SYNC:
      return complete();
    case PGRES_TUPLES_OK:
    case PGRES_COMMAND_OK:
    case PGRES_EMPTY_QUERY:
      // The results of BEGIN and of scripts have no waiter.
      if (++unit.answers > (unit.is_opening ? 1U : 0U) && unit.work == Unit::Work::batch)
        unit.rows.emplace_back(result.release());
      break;
    case PGRES_PIPELINE_ABORTED:
      break;
    case PGRES_COPY_IN:
    case PGRES_COPY_OUT:
    case PGRES_COPY_BOTH:
      // libpq would return this result forever.
      return fail(Error(Kind::unknown, "COPY is not possible here"));
    default:
      take_error(unit, result.get());
  }
}

void Session::take_error(Unit& unit, const PGresult* result) {
  const size_t before_items = unit.is_opening ? 1 : 0;
  const char* statement = nullptr;
  if (unit.answers >= before_items && unit.answers - before_items < unit.batch.size())
    statement = unit.batch.items()[unit.answers - before_items].statement.name;
  if (unit.error) return;

  Error::Report report = report_of(result, statement);
  // Without a state the error is libpq's own: the connection is lost, and fail() reports it.
  if (report.sqlstate.empty()) return;
  if (statement != nullptr && unit.work == Unit::Work::batch && is_statement_stale(result, report.sqlstate)) {
    for (const auto& prepared : unit.relied_on)
      if (prepared->error) unit.error = prepared->error;
    if (unit.error) return;
    if (prepared_.erase(statement) > 0) ++prepared_again_;
    unit.error = Error(Kind::retry, std::move(report));
    return;
  }
  // The primary has become a standby; another connection may find the new primary.
  if (report.sqlstate == "25006") {
    is_demoted_ = true;
    unit.error = Error(Kind::unavailable, std::move(report));
    return;
  }
  unit.error = Error(std::move(report));
}

void Session::complete() {
  const UnitPtr unit = std::move(sent_.front());
  sent_.pop_front();
  if (unit->work != Unit::Work::prepare) {
    // Callers read the result of each statement by its position.
    if (!unit->error && unit->work == Unit::Work::batch && unit->rows.size() != unit->batch.size())
      unit->error = Error(Kind::unknown, "the server did not return a result for every statement");
    finished_.push_back(unit);
    if (is_demoted_) fail(Error(Kind::unknown, "the server is read-only"));
    return;
  }
  unit->made->is_ready = !unit->error;
  unit->made->error = unit->error;
  if (unit->error) prepared_.erase(unit->batch.items().front().statement.name);
}

void Session::complete_script() {
  is_script_running_ = false;
  finished_.push_back(std::move(sent_.front()));
  sent_.pop_front();
  if (PQenterPipelineMode(conn_) != 1) fail(lost("cannot use pipeline mode"));
}

void Session::take_notifications() {
  while (PGnotify* found = PQnotifies(conn_)) {
    const std::unique_ptr<PGnotify, decltype(&PQfreemem)> notification(found, &PQfreemem);
    if (on_notification) on_notification(notification->relname, notification->extra);
    if (conn_ == nullptr) return;
  }
}

void Session::fail_if_stuck() {
  if (!is_open() || sent_.empty()) return;
  const auto self = shared_from_this();
  const size_t owed = sent_.size();
  read();
  if (conn_ != nullptr && sent_.size() == owed && PQisBusy(conn_) == 1)
    fail(Error(Kind::unknown, "the server did not respond in time"));
  if (!finished_.empty()) deliver_soon();
}

void Session::watch_response() {
  if (sent_.empty()) last_progress_ = base::BootClock::now();
  if (options_.response_timeout.count() == 0 || response_timer_.is_set()) return;
  response_timer_.call_at(last_progress_ + options_.response_timeout, [this] { check_response(); });
}

void Session::check_response() {
  if (sent_.empty()) return;
  const auto self = shared_from_this();
  if (base::BootClock::now() >= last_progress_ + options_.response_timeout) {
    // This process may have been the one that was suspended, so check the socket before failing.
    const size_t owed = sent_.size();
    read();
    if (conn_ == nullptr) return;
    if (sent_.size() == owed && PQisBusy(conn_) == 1)
      return fail(Error(Kind::unknown, "the server does not respond"));
    last_progress_ = base::BootClock::now();
    if (!finished_.empty()) deliver_soon();
  }
  if (!sent_.empty()) watch_response();
}

}  // namespace postrider::pg
