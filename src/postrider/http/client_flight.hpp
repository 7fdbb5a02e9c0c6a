// One exchange on its way: what Client::send keeps in its coroutine frame.
#pragma once

#include <coroutine>
#include <memory>
#include <string>

#include "postrider/http/client.hpp"
#include "postrider/http/client_connection.hpp"
#include "postrider/http/deadline_wheel.hpp"
#include "postrider/http/link.hpp"
#include "postrider/http/response_reader.hpp"

namespace postrider::http {

enum class Phase : uint8_t { lookup, connect, tls, send, first_byte, answer };

class Flight final : public ConnectionUser, public Deadline {
 public:
  enum class Interrupt : uint8_t {
    none,
    step,      // the time for one step is over (one of several addresses, the rest of a body)
    deadline,  // the time for the whole exchange is over
    canceled,
  };

  Flight(DeadlineWheel& wheel, Link& all_flights, size_t& in_flight, const OutboundRequest& outbound)
      : request(outbound),
        reader({.body_bytes_max = outbound.answer_body_bytes_max,
                .answers_head_request = outbound.method == "HEAD",
                .kept_bytes_max = outbound.answer_kept_bytes_max,
                .on_body = outbound.on_answer_body}),
        started(base::BootClock::now()),
        wheel_(wheel),
        in_flight_(in_flight) {
    ++in_flight_;
    membership.flight = this;
    membership.insert_before(all_flights);
    wheel_.set(*this, request.deadline);
  }
  ~Flight() { --in_flight_; }
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  const OutboundRequest& request;
  Phase phase = Phase::lookup;
  Interrupt interrupted = Interrupt::none;
  std::unique_ptr<Connection> connection;
  std::string unsent;  // what the socket did not take yet
  ResponseReader reader;
  Exchange exchange;
  runtime::SteadyTime started;
  runtime::SteadyTime send_started{};
  struct Membership : Link {
    Flight* flight = nullptr;
  } membership;

  void use(std::unique_ptr<Connection> opened) {
    connection = std::move(opened);
    connection->set_user(this);
  }
  void fail(NetError error) { fail(error, std::string(describe(error))); }
  void fail(NetError error, std::string detail) {
    exchange.outcome = NetFailure{error, std::move(detail), {}};
  }

  // A time limit for the step at hand, within the deadline.
  void limit_step(runtime::SteadyTime until) { wheel_.set(*this, std::min(until, request.deadline)); }
  void end_step() {
    if (interrupted == Interrupt::step) interrupted = Interrupt::none;
    wheel_.set(*this, request.deadline);
  }

  void cancel() {
    interrupted = Interrupt::canceled;
    resume();
  }
  bool is_waiting() const { return static_cast<bool>(waiting_); }

  // co_await: until the connection is ready for one of the events, or an interrupt.
  class Ready {
   public:
    Ready(Flight& flight, uint32_t events) : flight_(flight), events_(events) {}
    bool await_ready() const noexcept {
      return flight_.interrupted != Interrupt::none || flight_.connection->is_ready(events_);
    }
    void await_suspend(std::coroutine_handle<> waiting) noexcept {
      flight_.waiting_ = waiting;
      flight_.wanted_ = events_;
    }
    void await_resume() const noexcept {}

   private:
    Flight& flight_;
    uint32_t events_;
  };

 private:
  void on_connection_ready(Connection& ready) override {
    if (waiting_ && ready.is_ready(wanted_)) resume();
  }
  void on_deadline() override {
    if (interrupted != Interrupt::none) return;
    interrupted = base::BootClock::now() >= request.deadline ? Interrupt::deadline : Interrupt::step;
    resume();
  }
  void resume() {
    if (auto waiting = std::exchange(waiting_, {})) waiting.resume();
  }

  DeadlineWheel& wheel_;
  size_t& in_flight_;
  std::coroutine_handle<> waiting_;
  uint32_t wanted_ = 0;
};

}  // namespace postrider::http
