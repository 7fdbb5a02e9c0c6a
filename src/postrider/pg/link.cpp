#include "postrider/pg/link.hpp"

#include <algorithm>
#include <list>
#include <optional>

#include "postrider/base/backoff.hpp"
#include "postrider/base/check.hpp"

namespace postrider::pg {

using runtime::SteadyTime;
using runtime::Task;

namespace {

constexpr size_t kLostBackendsMax = 16;
constexpr std::chrono::seconds kAnswerGrace{1};  // for what arrives just at a deadline

}  // namespace

struct Link::State {
  State(runtime::Loop& on, LinkOptions chosen) : loop(on), options(std::move(chosen)), wakeup(on) {}

  Task<void> keep_up();
  Task<void> serve(std::unique_ptr<Connection> fresh);
  void resume_waiters();

  runtime::Loop& loop;
  LinkOptions options;
  base::UniqueFunction<void(const LinkUp&)> on_up;
  base::UniqueFunction<void(const Error&)> on_down;

  std::unique_ptr<Connection> opening;     // set while connecting
  std::unique_ptr<Connection> connection;  // set while up
  std::string last_error = "not connected yet";
  std::string timeline;
  uint64_t connections = 0;
  std::deque<Backend> lost_backends;
  bool is_stopping = false;

  struct Waiter {
    Waiter(State& of, SteadyTime deadline);
    ~Waiter() { leave(); }
    void leave();

    State& state;
    std::optional<std::list<Waiter*>::iterator> place;
    runtime::OneShot<bool> done;
    runtime::Timer timer;
  };
  std::list<Waiter*> waiters;

  runtime::Wakeup wakeup;  // of keep_up
  runtime::TaskGroup running;
};

Link::State::Waiter::Waiter(State& of, SteadyTime deadline)
    : state(of), place(of.waiters.insert(of.waiters.end(), this)), timer(of.loop) {
  timer.call_at(deadline, [this] {
    leave();
    done.set(true);
  });
}

void Link::State::Waiter::leave() {
  if (place) state.waiters.erase(*place);
  place.reset();
}

// Resumes each current waiter once. A waiter that finds the connection lost again waits after the others.
void Link::State::resume_waiters() {
  for (size_t left = waiters.size(); left > 0 && !waiters.empty(); --left) {
    Waiter* waiter = waiters.front();
    waiter->leave();
    waiter->timer.cancel();
    waiter->done.set(true);
  }
}

Task<void> Link::State::keep_up() {
  base::Backoff backoff({options.pause_min, options.pause_max});
  while (!is_stopping) {
    opening = std::make_unique<Connection>(loop, options.connect);
    try {
      co_await opening->connect();
    } catch (const Error& error) {
      last_error = error.what();
    }
    std::unique_ptr<Connection> fresh = std::move(opening);
    if (fresh->is_open() && !is_stopping) {
      backoff.reset();
      co_await serve(std::move(fresh));
    }
    if (is_stopping) break;
    co_await wakeup.wait_for(backoff.next());
  }
}

// Until the connection is lost.
Task<void> Link::State::serve(std::unique_ptr<Connection> fresh) {
  runtime::OneShot<Error> lost;
  fresh->on_closed([&lost](const Error& error) { lost.set(error); });
  connection = std::move(fresh);
  const std::string timeline_before = std::exchange(timeline, connection->server().timeline);
  const bool is_other = connections > 0 && timeline != timeline_before;
  ++connections;
  if (on_up) on_up(LinkUp{connections, is_other, *connection});
  resume_waiters();
  const Error reason = co_await lost;
  last_error = reason.what();
  const std::unique_ptr<Connection> old = std::move(connection);
  if (const auto& backend = old->server().backend) lost_backends.push_back(*backend);
  if (lost_backends.size() > kLostBackendsMax) lost_backends.pop_front();
  if (on_down) on_down(reason);
}

Link::Link(runtime::Loop& loop, LinkOptions options)
    : state_(std::make_unique<State>(loop, std::move(options))) {}
Link::~Link() = default;

void Link::on_up(base::UniqueFunction<void(const LinkUp&)> callback) {
  state_->on_up = std::move(callback);
}
void Link::on_down(base::UniqueFunction<void(const Error&)> callback) {
  state_->on_down = std::move(callback);
}

void Link::start() {
  CHECK(state_->running.running() == 0);
  state_->running.spawn(state_->keep_up());
}

Task<void> Link::stop() {
  state_->is_stopping = true;
  state_->last_error = "stopped";
  if (state_->opening) state_->opening->close();
  if (state_->connection) state_->connection->close();
  state_->resume_waiters();
  state_->wakeup.notify();
  co_await state_->running.join();
}

bool Link::is_up() const {
  return state_->connection != nullptr && state_->connection->is_open();
}

uint64_t Link::connection_number() const {
  return state_->connections;
}

const std::string& Link::last_error() const {
  return state_->last_error;
}

const std::deque<Backend>& Link::lost_backends() const {
  return state_->lost_backends;
}

bool Link::is_session_ours() const {
  return state_->options.connect.is_session_ours;
}

runtime::Loop& Link::loop() {
  return state_->loop;
}

Connection& Link::connection() {
  if (!is_up()) throw Error(Kind::unavailable, "no database connection: " + state_->last_error);
  return *state_->connection;
}

Task<void> Link::wait_up(SteadyTime deadline) {
  while (!is_up() && !state_->is_stopping && base::BootClock::now() < deadline) {
    State::Waiter waiter(*state_, deadline);
    co_await waiter.done;
  }
  connection();
}

namespace {

Task<std::vector<Rows>> fail_run(Error error) {
  throw error;
  co_return std::vector<Rows>();
}

}  // namespace

Task<std::vector<Rows>> Link::run(Batch batch) {
  if (!is_up()) return fail_run(Error(Kind::unavailable, "no database connection: " + state_->last_error));
  return state_->connection->run(std::move(batch));
}

Task<std::vector<Rows>> Link::run(Batch batch, SteadyTime deadline) {
  co_await wait_up(deadline);
  std::vector<Rows> rows = co_await connection().run(std::move(batch));
  co_return std::move(rows);
}

Task<Rows> Link::run_one(Statement statement, Params params) {
  Rows rows = co_await connection().run_one(statement, std::move(params));
  co_return std::move(rows);
}

Task<Transaction> Link::begin() {
  Transaction transaction = co_await connection().begin();
  co_return std::move(transaction);
}

Task<Transaction> Link::begin(SteadyTime deadline) {
  co_await wait_up(deadline);
  Transaction transaction = co_await connection().begin();
  co_return std::move(transaction);
}

AnswerDeadline::AnswerDeadline(Link& link, SteadyTime deadline) : link_(link), timer_(link.loop()) {
  check_at(deadline);
}

void AnswerDeadline::check_at(SteadyTime when) {
  timer_.call_at(when, [this] { check(); });
}

// Again and again: a part of the work may have begun on the next connection.
void AnswerDeadline::check() {
  if (link_.is_up()) link_.connection().close_if_stuck();
  check_at(base::BootClock::now() + kAnswerGrace);
}

}  // namespace postrider::pg
