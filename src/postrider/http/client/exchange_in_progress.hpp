// One exchange in progress: what Client::send keeps in its coroutine frame.
#pragma once

#include <algorithm>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <string>

#include "postrider/http/client/client.hpp"
#include "postrider/http/client/connection.hpp"
#include "postrider/http/client/deadline_wheel.hpp"
#include "postrider/http/client/read_turns.hpp"
#include "postrider/http/client/response_reader.hpp"

namespace postrider::http {

enum class Phase : uint8_t { lookup, connect, tls, send, first_byte, answer };

class ExchangeInProgress final : public ConnectionUser,
                                 public Deadline,
                                 public ReadTurns::Place,
                                 public ListHook<Client> {
 public:
  enum class Interrupt : uint8_t {
    none,
    step,      // the time for one step is over (one of several addresses, the rest of a body)
    deadline,  // the time for the whole exchange is over
    canceled,
  };

  using List = IntrusiveList<ExchangeInProgress, Client>;

  ExchangeInProgress(DeadlineWheel& wheel, List& all, size_t& in_flight, const OutboundRequest& outbound,
                     const DialProfile& dial_profile)
      : request(outbound),
        profile(dial_profile),
        reader({.body_bytes_max = outbound.response_body_bytes_max,
                .framing_bytes_max = framing_bytes_max(outbound),
                .responds_to_head = outbound.method == "HEAD",
                .kept_bytes_max = outbound.response_kept_bytes_max,
                .on_body = outbound.on_response_body}),
        wire_bytes_left(wire_bytes_max(outbound)),
        started(base::BootClock::now()),
        wheel_(wheel),
        in_flight_(in_flight) {
    ++in_flight_;
    all.push_back(*this);
    end_step();
  }
  ~ExchangeInProgress() { --in_flight_; }
  ExchangeInProgress(const ExchangeInProgress&) = delete;
  ExchangeInProgress& operator=(const ExchangeInProgress&) = delete;

  const OutboundRequest& request;
  const DialProfile& profile;
  Phase phase = Phase::lookup;
  Interrupt interrupted = Interrupt::none;
  std::unique_ptr<Connection> connection;
  std::string unsent;  // what the socket did not take yet
  ResponseReader reader;
  Exchange exchange;
  size_t wire_bytes_left;     // that the response may still take, TLS included
  bool is_turn_over = false;  // the rest is read in the next turn of the loop
  runtime::SteadyTime started;
  runtime::SteadyTime send_started{};

  PoolKeyView pool_key() const { return {profile.id(), request.url.origin}; }
  void use(std::unique_ptr<Connection> opened) {
    connection = std::move(opened);
    connection->set_user(this);
  }
  void fail(NetError error) { fail(error, std::string(describe(error))); }
  void fail(NetError error, std::string detail) {
    exchange.outcome = NetFailure{error, std::move(detail), {}};
  }

  // A time limit for the step at hand, within the deadline.
  void limit_step(runtime::SteadyTime until) {
    step_deadline_ = std::min(until, request.deadline);
    wheel_.set(*this, step_deadline_);
  }
  void end_step() {
    if (interrupted == Interrupt::step) interrupted = Interrupt::none;
    limit_step(request.deadline);
  }
  // For loops that do not wait: records an interrupt as the wheel would.
  bool is_interrupted() {
    const runtime::SteadyTime now = base::BootClock::now();
    if (interrupted == Interrupt::none && now >= step_deadline_)
      interrupted = now >= request.deadline ? Interrupt::deadline : Interrupt::step;
    return interrupted != Interrupt::none;
  }

  void cancel() {
    interrupted = Interrupt::canceled;
    resume();
  }
  bool is_waiting() const { return static_cast<bool>(waiting_); }

  // co_await: until the connection is ready for one of the events, or an interrupt.
  class Ready {
   public:
    Ready(ExchangeInProgress& current, uint32_t events) : current_(current), events_(events) {}
    bool await_ready() const noexcept {
      return current_.interrupted != Interrupt::none || current_.connection->is_ready(events_);
    }
    void await_suspend(std::coroutine_handle<> waiting) noexcept {
      current_.waiting_ = waiting;
      current_.wanted_ = events_;
    }
    void await_resume() const noexcept {}

   private:
    ExchangeInProgress& current_;
    uint32_t events_;
  };

  // co_await: until the next turn of the loop, or an interrupt.
  class NextTurn {
   public:
    NextTurn(ExchangeInProgress& current, ReadTurns& turns) : current_(current), turns_(turns) {}
    bool await_ready() const noexcept { return current_.interrupted != Interrupt::none; }
    void await_suspend(std::coroutine_handle<> waiting) {
      current_.waiting_ = waiting;
      current_.wanted_ = 0;
      turns_.join_line(current_);
    }
    void await_resume() const noexcept { current_.is_turn_over = false; }

   private:
    ExchangeInProgress& current_;
    ReadTurns& turns_;
  };

 private:
  // Streams have no limit on their body, so none on its framing either.
  static size_t framing_bytes_max(const OutboundRequest& outbound) {
    return std::max(kChunkFramingBytesMax, outbound.response_body_bytes_max);
  }
  // The response itself has tighter limits. This one stops a peer that sends TLS records without data.
  static size_t wire_bytes_max(const OutboundRequest& outbound) {
    constexpr size_t tls_bytes_max = 256 * 1024;
    const size_t framing = framing_bytes_max(outbound);
    if (framing > SIZE_MAX / 4) return SIZE_MAX;
    return kResponseHeadBytesMax + outbound.response_body_bytes_max + framing + tls_bytes_max;
  }

  void on_turn() override { resume(); }
  void on_connection_ready(Connection& ready) override {
    if (waiting_ && ready.is_ready(wanted_)) resume();
  }
  void on_deadline() override {
    if (interrupted != Interrupt::none) return;
    interrupted = base::BootClock::now() >= request.deadline ? Interrupt::deadline : Interrupt::step;
    resume();
  }
  void resume() {
    leave_line();
    if (auto waiting = std::exchange(waiting_, {})) waiting.resume();
  }

  DeadlineWheel& wheel_;
  runtime::SteadyTime step_deadline_{};
  size_t& in_flight_;
  std::coroutine_handle<> waiting_;
  uint32_t wanted_ = 0;
};

}  // namespace postrider::http
