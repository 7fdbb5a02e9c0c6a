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

constexpr size_t kReadBytes = 64 * 1024;
constexpr size_t kOutgoingBytesKept = 64 * 1024;

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
      return NetError::timeout_response;
  }
  return NetError::timeout_response;
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
      owner_profiles(address_guard, tls_context),
      options(std::move(client_options)),
      wheel(loop),
      poller(loop),
      turns(loop),
      resolver(loop, options.resolver),
      pool(wheel, options),
      incoming(kReadBytes) {}

Client::Client(runtime::Loop& loop, const AddressGuard& guard, const TlsContext& tls, ClientOptions options)
    : state_(std::make_unique<State>(loop, guard, tls, std::move(options))) {}

Client::~Client() {
  CHECK(state_->in_progress.empty());
}

Task<Exchange> Client::send(OutboundRequest request) {
  return state_->exchange(request);
}

std::shared_ptr<const DialProfile> Client::profile_of(std::string_view owner,
                                                      std::span<const Network> networks) {
  OwnerProfiles::Found found = state_->owner_profiles.of(owner, networks);
  for (const uint64_t retired : found.retired) state_->pool.close_all_of(retired);
  return std::move(found.profile);
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
  // An exchange that is not waiting is running right now, further up this stack. It ends when it continues.
  // One that was waiting has ended when cancel() returns, and others may have ended with it.
  auto& all = state_->in_progress;
  for (auto next = all.begin(); next != all.end();) {
    const bool was_waiting = next->is_waiting();
    next->cancel();
    next = was_waiting ? all.begin() : std::next(next);
  }
  state_->pool.close_all();
}

Task<Exchange> Client::State::exchange(OutboundRequest request) {
  CHECK(request.headers.empty() || request.headers.ends_with("\r\n"));
  if (is_closed) {
    Exchange blocked;
    blocked.outcome = NetFailure{NetError::canceled, std::string(describe(NetError::canceled)), {}};
    co_return blocked;
  }
  ++stats.exchanges;
  const DialProfile& profile = request.profile != nullptr ? *request.profile : own_profile;
  ExchangeInProgress current(wheel, in_progress, stats.in_flight, request, profile);
  if (auto pooled = pool.take(current.pool_key())) {
    ++stats.connections_reused;
    current.exchange.is_reused = true;
    current.exchange.remote = pooled->remote();
    current.use(std::move(pooled));
  }
  while (true) {
    if (!current.connection) {
      const bool is_open = co_await open(current);
      if (!is_open) break;
    }
    uint32_t awaited = begin(current);
    while (awaited != 0) {
      ExchangeInProgress::NextTurn next_turn(current, turns);
      ExchangeInProgress::Ready ready(current, awaited);
      if (current.is_turn_over)
        co_await next_turn;
      else
        co_await ready;
      awaited = proceed(current);
    }
    if (!should_resend(current)) break;
  }
  finish(current);
  co_return std::move(current.exchange);
}

uint32_t Client::State::begin(ExchangeInProgress& current) {
  current.phase = Phase::send;
  current.send_started = base::BootClock::now();
  write_request(outgoing, current.request);
  const bool is_open = send_rest(current, outgoing);
  if (outgoing.capacity() > kOutgoingBytesKept) outgoing = std::string();
  if (!is_open) return 0;
  if (current.unsent.empty()) return Connection::kReadable;
  return Connection::kReadable | Connection::kWritable;
}

uint32_t Client::State::proceed(ExchangeInProgress& current) {
  if (current.interrupted != ExchangeInProgress::Interrupt::none) {
    conclude_interrupt(current);
    return 0;
  }
  // An endpoint may respond and close without reading the whole request, so read first.
  receive(current);
  if (!current.connection) return 0;
  if (current.reader.is_done()) return 0;
  if (current.interrupted != ExchangeInProgress::Interrupt::none) {
    conclude_interrupt(current);
    return 0;
  }
  if (current.unsent.empty()) return Connection::kReadable;

  if (current.connection->is_ready(Connection::kWritable)) {
    const std::string rest = std::move(current.unsent);
    if (!send_rest(current, rest)) return 0;
  }
  if (current.unsent.empty()) return Connection::kReadable;
  return Connection::kReadable | Connection::kWritable;
}

// False when the connection broke and the exchange is over. What the socket did not take is kept in `unsent`.
bool Client::State::send_rest(ExchangeInProgress& current, std::string_view bytes) {
  current.unsent.clear();
  while (!bytes.empty()) {
    const IoResult result = current.connection->write(bytes);
    if (result.kind == IoResult::Kind::moved) {
      current.exchange.bytes_sent += result.bytes;
      bytes.remove_prefix(result.bytes);
      continue;
    }
    if (result.kind == IoResult::Kind::would_block) {
      current.unsent = bytes;
      return true;
    }
    // The endpoint may have responded before it closed.
    receive(current);
    if (current.is_turn_over) return true;  // the rest of it follows
    if (current.connection && !current.reader.is_done()) conclude_broken(current, NetError::connection_reset);
    return false;
  }
  base::reach("client.sent");
  current.exchange.times.send = between(current.send_started, base::BootClock::now());
  if (current.phase == Phase::send) current.phase = Phase::first_byte;
  return true;
}

// Reads the available bytes, up to the exchange's share of this turn.
void Client::State::receive(ExchangeInProgress& current) {
  size_t turn_bytes = 0;
  while (current.connection->is_ready(Connection::kReadable) && !current.reader.is_done()) {
    if (!has_share_left(current, turn_bytes)) return;
    const IoResult result = current.connection->read(incoming.data(), incoming.size());
    turn_bytes += result.wire_bytes;
    count_read(current, result);
    if (current.wire_bytes_left == 0) return conclude_flood(current);
    if (result.kind == IoResult::Kind::would_block) return;
    if (result.kind == IoResult::Kind::failed) return conclude_failed_read(current, result);
    if (result.kind == IoResult::Kind::closed) {
      if (current.reader.has_bytes()) return current.reader.feed_end();
      return conclude_broken(current, NetError::connection_closed);
    }
    if (result.kind == IoResult::Kind::moved) feed(current, std::string_view(incoming.data(), result.bytes));
    if (current.wire_bytes_left == 0 && !current.reader.is_done()) return conclude_flood(current);
  }
}

bool Client::State::has_share_left(ExchangeInProgress& current, size_t turn_bytes) {
  if (turn_bytes > 0 && current.is_interrupted()) return false;
  current.is_turn_over = turn_bytes >= ReadTurns::kReaderBytesMax || turns.is_used_up();
  return !current.is_turn_over;
}

void Client::State::count_read(ExchangeInProgress& current, const IoResult& result) {
  stats.bytes_received += result.wire_bytes;
  turns.spend(result.wire_bytes);
  current.wire_bytes_left -= std::min(current.wire_bytes_left, result.wire_bytes);
}

void Client::State::feed(ExchangeInProgress& current, std::string_view bytes) {
  if (!current.reader.has_bytes()) {
    current.phase = Phase::answer;
    current.exchange.times.first_byte = between(current.send_started, base::BootClock::now());
  }
  base::reach("client.answered");
  const bool had_head = current.reader.has_head();
  const uint64_t body_bytes = had_head ? current.reader.answer().body_bytes : 0;
  current.reader.feed(bytes);
  if (!current.reader.has_head() || current.reader.is_done()) return;
  const auto silence = current.request.response_silence_max;
  const bool has_more = !had_head || current.reader.answer().body_bytes > body_bytes;
  if (silence.count() > 0 && has_more)
    current.limit_step(base::BootClock::now() + silence);
  else if (silence.count() == 0 && !had_head)
    current.limit_step(base::BootClock::now() + options.body_wait_max);
}

void Client::State::conclude_interrupt(ExchangeInProgress& current) {
  current.connection.reset();
  if (current.interrupted == ExchangeInProgress::Interrupt::canceled) return current.fail(NetError::canceled);
  if (!current.reader.has_head()) current.fail(timeout_in(current.phase));
}

// With TLS 1.3 an endpoint may reject the connection after the handshake, for example because it requires a
// certificate.
void Client::State::conclude_failed_read(ExchangeInProgress& current, const IoResult& result) {
  const bool is_rejection = current.connection->tls() != nullptr && result.system_error == 0;
  if (!is_rejection || current.reader.has_head()) return conclude_broken(current, NetError::connection_reset);
  const TlsStream::Failure failure = current.connection->tls()->failure();
  current.connection.reset();
  current.fail(failure.error, failure.detail);
}

// The peer closed or reset. With a complete head this is a truncated response, otherwise a failure.
void Client::State::conclude_broken(ExchangeInProgress& current, NetError error) {
  current.connection.reset();
  if (!current.reader.has_head()) current.fail(error);
}

void Client::State::conclude_flood(ExchangeInProgress& current) {
  current.connection.reset();
  if (!current.reader.has_head())
    current.fail(NetError::tls_failed, "TLS failed: the endpoint sends too many records without data");
}

// A pooled connection that was closed before any byte of a response: the endpoint closed it while it was
// idle.
bool Client::State::should_resend(ExchangeInProgress& current) {
  const NetFailure* failure = current.exchange.failure();
  const bool is_stale = failure != nullptr && (failure->error == NetError::connection_closed ||
                                               failure->error == NetError::connection_reset);
  if (!is_stale || current.connection || current.reader.has_bytes()) return false;
  if (!current.exchange.is_reused || current.exchange.is_resent ||
      current.interrupted != ExchangeInProgress::Interrupt::none)
    return false;
  current.exchange.is_resent = true;
  current.exchange.is_reused = false;
  ++stats.resent;
  return true;
}

void Client::State::finish(ExchangeInProgress& current) {
  if (current.reader.has_head() && current.interrupted != ExchangeInProgress::Interrupt::canceled)
    current.exchange.outcome = std::move(current.reader.answer());
  else if (const auto error = current.reader.error())
    current.fail(*error);
  if (current.connection) {
    current.connection->set_user(nullptr);
    const bool can_reuse = current.reader.can_reuse() && current.unsent.empty() && !is_closed;
    if (can_reuse)
      pool.put(current.pool_key(), std::move(current.connection));
    else if (TlsStream* stream = current.connection->tls())
      pool.sessions().put(current.pool_key(), stream->take_session());
    current.connection.reset();
  }
  current.exchange.times.total = between(current.started, base::BootClock::now());
}

}  // namespace postrider::http
