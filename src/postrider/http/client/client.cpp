#include "postrider/http/client/client.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>

#include "postrider/base/check.hpp"
#include "postrider/base/fail_point.hpp"
#include "postrider/http/client/state.hpp"
#include "postrider/http/request_grammar.hpp"

namespace postrider::http {

using runtime::Task;

namespace {

constexpr size_t read_bytes = 64 * 1024;
constexpr size_t outgoing_bytes_kept = 64 * 1024;

std::chrono::microseconds between(runtime::SteadyTime start, runtime::SteadyTime end) {
  return std::chrono::duration_cast<std::chrono::microseconds>(end - start);
}

void write_request(std::string& out, const OutboundRequest& request) {
  char length[20];
  const auto end = std::to_chars(length, length + sizeof length, request.body.size()).ptr;
  out.clear();
  out.append(request.method).append(" ").append(request.url.target).append(" HTTP/1.1\r\nhost: ");
  out.append(request.url.authority()).append("\r\n").append(request.headers);
  out.append("content-length: ").append(length, end).append("\r\n\r\n").append(request.body);
}

NetError timeout_in(Phase phase) {
  switch (phase) {
    case Phase::lookup:
      return NetError::timeout_lookup;
    case Phase::connect:
      return NetError::timeout_connect;
    case Phase::tls:
      return NetError::timeout_tls;
    case Phase::send:
      return NetError::timeout_send;
    case Phase::first_byte:
      return NetError::timeout_first_byte;
    case Phase::answer:
      return NetError::timeout_answer;
  }
  return NetError::timeout_answer;
}

}  // namespace

bool is_header(std::string_view name, std::string_view value) {
  const auto is_token = [](char c) { return grammar::is(c, grammar::token); };
  const auto is_value = [](char c) { return grammar::is(c, grammar::value); };
  return !name.empty() && std::all_of(name.begin(), name.end(), is_token) &&
         std::all_of(value.begin(), value.end(), is_value);
}

bool append_header(std::string& lines, std::string_view name, std::string_view value) {
  if (!is_header(name, value)) return false;
  lines.append(name).append(": ").append(value).append("\r\n");
  return true;
}

DialProfile::DialProfile(const AddressGuard& guard, const TlsContext& tls) : guard_(&guard), tls_(&tls) {
  static std::atomic<uint64_t> last_id = 0;
  id_ = ++last_id;
}

Client::State::State(runtime::Loop& loop, const AddressGuard& address_guard, const TlsContext& tls_context,
                     ClientOptions client_options)
    : own_profile(address_guard, tls_context),
      options(std::move(client_options)),
      wheel(loop),
      poller(loop),
      turns(loop),
      resolver(loop, options.resolver),
      pool(wheel, options),
      incoming(read_bytes) {}

Client::Client(runtime::Loop& loop, const AddressGuard& guard, const TlsContext& tls, ClientOptions options)
    : state_(std::make_unique<State>(loop, guard, tls, std::move(options))) {}

Client::~Client() {
  CHECK(!state_->flights.is_linked());
}

Task<Exchange> Client::send(OutboundRequest request) {
  return state_->exchange(request);
}

Resolver& Client::resolver() {
  return state_->resolver;
}

const Client::Stats& Client::stats() const {
  state_->stats.idle = state_->pool.idle();
  return state_->stats;
}

void Client::close() {
  state_->is_closed = true;
  state_->resolver.close();
  // A flight that is not waiting is running right now, further up this very stack: it ends when it goes on.
  Link* link = state_->flights.next;
  while (link != &state_->flights) {
    Flight* flight = static_cast<Flight::Membership*>(link)->flight;
    const bool was_waiting = flight->is_waiting();
    flight->cancel();
    link = was_waiting ? state_->flights.next : link->next;
  }
  state_->pool.close_all();
}

Task<Exchange> Client::State::exchange(OutboundRequest request) {
  CHECK(request.headers.empty() || request.headers.ends_with("\r\n"));
  if (is_closed) {
    Exchange refused;
    refused.outcome = NetFailure{NetError::canceled, std::string(describe(NetError::canceled)), {}};
    co_return refused;
  }
  ++stats.exchanges;
  const DialProfile& profile = request.profile != nullptr ? *request.profile : own_profile;
  Flight flight(wheel, flights, stats.in_flight, request, profile);
  if (auto pooled = pool.take(flight.pool_key())) {
    ++stats.connections_reused;
    flight.exchange.is_reused = true;
    flight.exchange.remote = pooled->remote();
    flight.use(std::move(pooled));
  }
  while (true) {
    if (!flight.connection) {
      const bool is_open = co_await open(flight);
      if (!is_open) break;
    }
    uint32_t awaited = begin(flight);
    while (awaited != 0) {
      Flight::NextTurn next_turn(flight, turns);
      Flight::Ready ready(flight, awaited);
      if (flight.is_turn_over)
        co_await next_turn;
      else
        co_await ready;
      awaited = proceed(flight);
    }
    if (!should_resend(flight)) break;
  }
  finish(flight);
  co_return std::move(flight.exchange);
}

uint32_t Client::State::begin(Flight& flight) {
  flight.phase = Phase::send;
  flight.send_started = base::BootClock::now();
  write_request(outgoing, flight.request);
  const bool is_open = send_rest(flight, outgoing);
  if (outgoing.capacity() > outgoing_bytes_kept) outgoing = std::string();
  if (!is_open) return 0;
  if (flight.unsent.empty()) return Connection::readable;
  return Connection::readable | Connection::writable;
}

uint32_t Client::State::proceed(Flight& flight) {
  if (flight.interrupted != Flight::Interrupt::none) {
    conclude_interrupt(flight);
    return 0;
  }
  // An endpoint may answer and close without reading the whole request, so reading comes first.
  receive(flight);
  if (!flight.connection) return 0;
  if (flight.reader.is_done()) return 0;
  if (flight.interrupted != Flight::Interrupt::none) {
    conclude_interrupt(flight);
    return 0;
  }
  if (flight.unsent.empty()) return Connection::readable;

  if (flight.connection->is_ready(Connection::writable)) {
    const std::string rest = std::move(flight.unsent);
    if (!send_rest(flight, rest)) return 0;
  }
  if (flight.unsent.empty()) return Connection::readable;
  return Connection::readable | Connection::writable;
}

// False when the connection broke and the exchange is over. What the socket did not take is kept in `unsent`.
bool Client::State::send_rest(Flight& flight, std::string_view bytes) {
  flight.unsent.clear();
  while (!bytes.empty()) {
    const IoResult result = flight.connection->write(bytes);
    if (result.kind == IoResult::Kind::moved) {
      bytes.remove_prefix(result.bytes);
      continue;
    }
    if (result.kind == IoResult::Kind::would_block) {
      flight.unsent = bytes;
      return true;
    }
    // Perhaps the endpoint has answered before it closed.
    receive(flight);
    if (flight.is_turn_over) return true;  // the rest of it follows
    if (flight.connection && !flight.reader.is_done()) conclude_broken(flight, NetError::connection_reset);
    return false;
  }
  base::reach("client.sent");
  if (flight.phase == Phase::send) flight.phase = Phase::first_byte;
  return true;
}

// Reads what has come, up to the flight's share of this turn.
void Client::State::receive(Flight& flight) {
  size_t turn_bytes = 0;
  while (flight.connection->is_ready(Connection::readable) && !flight.reader.is_done()) {
    if (!has_share_left(flight, turn_bytes)) return;
    const IoResult result = flight.connection->read(incoming.data(), incoming.size());
    turn_bytes += result.wire_bytes;
    count_read(flight, result);
    if (flight.wire_bytes_left == 0) return conclude_flood(flight);
    if (result.kind == IoResult::Kind::would_block) return;
    if (result.kind == IoResult::Kind::failed) return conclude_failed_read(flight, result);
    if (result.kind == IoResult::Kind::closed) {
      if (flight.reader.has_bytes()) return flight.reader.feed_end();
      return conclude_broken(flight, NetError::connection_closed);
    }
    if (result.kind == IoResult::Kind::moved) feed(flight, std::string_view(incoming.data(), result.bytes));
    if (flight.wire_bytes_left == 0 && !flight.reader.is_done()) return conclude_flood(flight);
  }
}

bool Client::State::has_share_left(Flight& flight, size_t turn_bytes) {
  if (turn_bytes > 0 && flight.is_interrupted()) return false;
  flight.is_turn_over = turn_bytes >= ReadTurns::reader_bytes_max || turns.is_used_up();
  return !flight.is_turn_over;
}

void Client::State::count_read(Flight& flight, const IoResult& result) {
  stats.bytes_received += result.wire_bytes;
  turns.spend(result.wire_bytes);
  flight.wire_bytes_left -= std::min(flight.wire_bytes_left, result.wire_bytes);
}

void Client::State::feed(Flight& flight, std::string_view bytes) {
  if (!flight.reader.has_bytes()) {
    flight.phase = Phase::answer;
    flight.exchange.times.first_byte = between(flight.send_started, base::BootClock::now());
  }
  base::reach("client.answered");
  const bool had_head = flight.reader.has_head();
  const uint64_t body_bytes = had_head ? flight.reader.answer().body_bytes : 0;
  flight.reader.feed(bytes);
  if (!flight.reader.has_head() || flight.reader.is_done()) return;
  const auto silence = flight.request.answer_silence_max;
  const bool has_more = !had_head || flight.reader.answer().body_bytes > body_bytes;
  if (silence.count() > 0 && has_more)
    flight.limit_step(base::BootClock::now() + silence);
  else if (silence.count() == 0 && !had_head)
    flight.limit_step(base::BootClock::now() + options.body_wait_max);
}

void Client::State::conclude_interrupt(Flight& flight) {
  flight.connection.reset();
  if (flight.interrupted == Flight::Interrupt::canceled) return flight.fail(NetError::canceled);
  if (!flight.reader.has_head()) flight.fail(timeout_in(flight.phase));
}

// With TLS 1.3 an endpoint may refuse after the handshake, for example because it wants a certificate.
void Client::State::conclude_failed_read(Flight& flight, const IoResult& result) {
  const bool is_refusal = flight.connection->tls() != nullptr && result.system_error == 0;
  if (!is_refusal || flight.reader.has_head()) return conclude_broken(flight, NetError::connection_reset);
  const TlsStream::Trouble trouble = flight.connection->tls()->trouble();
  flight.connection.reset();
  flight.fail(trouble.error, trouble.words);
}

// The peer closed or reset. With a complete head that is an answer cut short, otherwise a failure.
void Client::State::conclude_broken(Flight& flight, NetError error) {
  flight.connection.reset();
  if (!flight.reader.has_head()) flight.fail(error);
}

void Client::State::conclude_flood(Flight& flight) {
  flight.connection.reset();
  if (!flight.reader.has_head())
    flight.fail(NetError::tls_failed, "TLS failed: the endpoint sends too many records without data");
}

// A pooled connection that was closed before any byte of an answer: the endpoint gave up on it while it was
// idle.
bool Client::State::should_resend(Flight& flight) {
  const NetFailure* failure = flight.exchange.failure();
  const bool is_stale = failure != nullptr && (failure->error == NetError::connection_closed ||
                                               failure->error == NetError::connection_reset);
  if (!is_stale || flight.connection || flight.reader.has_bytes()) return false;
  if (!flight.exchange.is_reused || flight.exchange.is_resent ||
      flight.interrupted != Flight::Interrupt::none)
    return false;
  flight.exchange.is_resent = true;
  flight.exchange.is_reused = false;
  ++stats.resent;
  return true;
}

void Client::State::finish(Flight& flight) {
  if (flight.reader.has_head() && flight.interrupted != Flight::Interrupt::canceled)
    flight.exchange.outcome = std::move(flight.reader.answer());
  else if (const auto error = flight.reader.error())
    flight.fail(*error);
  if (flight.connection) {
    flight.connection->set_user(nullptr);
    const bool can_reuse = flight.reader.can_reuse() && flight.unsent.empty() && !is_closed;
    if (can_reuse)
      pool.put(flight.pool_key(), std::move(flight.connection));
    else if (TlsStream* stream = flight.connection->tls())
      pool.sessions().put(flight.pool_key(), stream->take_session());
    flight.connection.reset();
  }
  flight.exchange.times.total = between(flight.started, base::BootClock::now());
}

}  // namespace postrider::http
