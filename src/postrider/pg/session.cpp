#include "postrider/pg/session.hpp"

#include "postrider/base/check.hpp"

namespace postrider::pg {

Session::Session(runtime::Loop& loop, ConnectOptions options)
    : loop_(loop),
      options_(std::move(options)),
      socket_(loop.io().get_executor()),
      deadline_(loop),
      response_timer_(loop) {}

Session::~Session() {
  close_socket();
}

void Session::close_socket() {
  if (conn_ == nullptr) return;
  // libpq owns the descriptor: it must not be closed twice.
  if (socket_.is_open()) socket_.release();
  PQfinish(std::exchange(conn_, nullptr));
}

Error Session::lost(const char* fallback) const {
  std::string message = conn_ == nullptr ? "out of memory" : PQerrorMessage(conn_);
  while (!message.empty() && message.back() == '\n') message.pop_back();
  return Error(Kind::unknown, message.empty() ? fallback : message);
}

void Session::fail_if_open(const char* reason) {
  if (!closed_by_) fail(Error(Kind::unknown, reason));
}

void Session::fail(Error reason) {
  if (closed_by_) return;
  close_socket();
  deadline_.cancel();
  response_timer_.cancel();
  if (connecting_) {
    connecting_->error = Error(Kind::unavailable, {reason.sqlstate(), reason.what(), ""});
    finished_.push_back(std::exchange(connecting_, nullptr));
  }
  for (const UnitPtr& unit : sent_) {
    if (!unit->error) unit->error = Error(Kind::unknown, std::string("connection lost: ") + reason.what());
    finished_.push_back(unit);
  }
  if (script_) waiting_.push_front(std::exchange(script_, nullptr));
  for (const UnitPtr& unit : waiting_) {
    unit->error = Error(Kind::unavailable, std::string("not sent, connection lost: ") + reason.what());
    finished_.push_back(unit);
  }
  sent_.clear();
  waiting_.clear();
  closed_by_ = std::move(reason);
  deliver_soon();
}

void Session::abandon() {
  on_closed = {};
  on_notification = {};
  fail_if_open("connection closed");
}

void Session::deliver_soon() {
  if (std::exchange(is_delivery_posted_, true)) return;
  loop_.post([self = shared_from_this()] {
    self->is_delivery_posted_ = false;
    self->deliver();
  });
}

void Session::deliver() {
  const auto self = shared_from_this();
  if (closed_by_ && on_closed) std::exchange(on_closed, {})(*closed_by_);
  while (!finished_.empty()) {
    const UnitPtr unit = std::move(finished_.front());
    finished_.pop_front();
    if (!unit->is_abandoned)
      unit->done.set(true);
    else if (unit->work == Unit::Work::turn && !unit->error)
      end_turn(nullptr);
  }
}

void Session::submit(UnitPtr unit) {
  if (closed_by_ || conn_ == nullptr)
    unit->error = Error(Kind::unavailable, "no connection");
  else if (waiting_.size() >= options_.waiting_max)
    unit->error = Error(Kind::unavailable, "too many batches are waiting");
  if (unit->error) {
    unit->done.set(true);
    return;
  }
  waiting_.push_back(std::move(unit));
  pump();
  if (!finished_.empty()) deliver_soon();
}

void Session::submit_in_turn(UnitPtr unit) {
  if (closed_by_) {
    unit->error = Error(Kind::unavailable, "connection lost during the transaction, which is rolled back");
    unit->done.set(true);
    return;
  }
  CHECK(is_taken_);
  CHECK(!script_ && !is_script_running_);
  unit->is_opening = !std::exchange(is_begun_, true);
  if (unit->work == Unit::Work::script) {
    script_ = std::move(unit);
    start_script();
  } else {
    send(unit);
  }
}

void Session::end_turn(UnitPtr last) {
  if (last) submit_in_turn(std::move(last));
  is_taken_ = false;
  is_begun_ = false;
  pump();
  if (!finished_.empty()) deliver_soon();
}

}  // namespace postrider::pg
