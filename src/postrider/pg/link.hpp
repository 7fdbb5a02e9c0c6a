// Keeps one connection alive: connects, and reconnects after a loss with growing, jittered pauses, forever. A
// new connection has no prepared statements, so they are prepared again when they are used.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "postrider/base/unique_function.hpp"
#include "postrider/pg/connection.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::pg {

struct LinkOptions {
  ConnectOptions connect;
  Milliseconds pause_min{100};  // before the second attempt; doubled for each further one
  Milliseconds pause_max{5'000};
};

// Passed to the owner of a link each time it comes up.
struct LinkUp {
  uint64_t connection_number;  // 1 for the first
  // Another server, or the same one after a fail-over: drop leases, lanes and cursors.
  bool is_other_timeline;
  Connection& connection;
};

class Link {
 public:
  Link(runtime::Loop& loop, LinkOptions options);
  ~Link();  // stop() was awaited, or start() never called
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Both are called on the loop and set before start(). They must not throw.
  void on_up(base::UniqueFunction<void(const LinkUp&)> callback);
  void on_down(base::UniqueFunction<void(const Error&)> callback);

  void start();
  // Closes the connection; batches in flight fail, waiters get Error(unavailable).
  runtime::Task<void> stop();

  bool is_up() const;
  uint64_t connection_number() const;  // 1 for the first; the last one's while down
  // The reason why it is down: the last failure to connect, or the error that ended the connection.
  const std::string& last_error() const;
  // The backends of the last connections that were lost, in order. Each may still work on what it was sent.
  // None behind a pooler.
  const std::deque<Backend>& lost_backends() const;
  bool is_session_ours() const;
  runtime::Loop& loop();
  // Returns when up; throws Error(unavailable) at the deadline. Any number may wait.
  runtime::Task<void> wait_up(runtime::SteadyTime deadline);

  // As on Connection. Without a deadline they throw Error(unavailable) at once while the link is down; with
  // one they wait until then for the connection (for the result, see AnswerDeadline).
  runtime::Task<std::vector<Rows>> run(Batch batch);
  runtime::Task<std::vector<Rows>> run(Batch batch, runtime::SteadyTime deadline);
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
  runtime::Task<Transaction> begin();
  runtime::Task<Transaction> begin(runtime::SteadyTime deadline);
  Connection& connection();  // throws Error(unavailable) while down

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// While it exists: after the deadline, a connection that does not respond is closed, so that nothing
// waits for a server that hangs: what was sent fails with Kind::unknown. It must not outlive the link.
class AnswerDeadline {
 public:
  AnswerDeadline(Link& link, runtime::SteadyTime deadline);

 private:
  void check();
  void check_at(runtime::SteadyTime when);

  Link& link_;
  runtime::Timer timer_;
};

}  // namespace postrider::pg
