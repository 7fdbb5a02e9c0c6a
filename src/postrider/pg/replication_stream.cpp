#include "postrider/pg/replication_stream.hpp"

#include <libpq-fe.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <utility>

#include "postrider/base/check.hpp"

namespace postrider::pg {

namespace {

using boost::asio::posix::descriptor_base;
using runtime::Task;
using ResultPtr = std::unique_ptr<PGresult, decltype(&PQclear)>;

constexpr size_t kDataHead = 25;       // 'w', start, end, time
constexpr size_t kKeepaliveSize = 18;  // 'k', end, time, whether a reply is requested
constexpr std::chrono::minutes kResponseCheck{1};
constexpr int64_t kPostgresEpoch = 946'684'800'000'000;

void ignore_notice(void*, const PGresult*) {}

uint64_t read_int64(const char* from) {
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | static_cast<uint8_t>(from[i]);
  return value;
}

void put_int64(std::string& to, uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) to.push_back(static_cast<char>(value >> shift));
}

PGconn* start_connecting(const ConnectOptions& options) {
  const std::string tcp_user_timeout = std::to_string(options.tcp_user_timeout.count());
  const std::array<const char*, 8> keywords{
      "application_name",     "tcp_user_timeout", "keepalives_idle", "keepalives_interval",
      "target_session_attrs", "dbname",           "replication",     nullptr};
  const std::array<const char*, 8> values{options.application_name.c_str(),
                                          tcp_user_timeout.c_str(),
                                          "10",
                                          "3",
                                          "read-write",
                                          options.url.c_str(),
                                          "database",
                                          nullptr};
  return PQconnectStartParams(keywords.data(), values.data(), 1);
}

Error rejection(const PGresult* result) {
  const auto field = [result](int code) {
    const char* text = PQresultErrorField(result, code);
    return std::string(text == nullptr ? "" : text);
  };
  Error::Report report;
  report.sqlstate = field(PG_DIAG_SQLSTATE);
  report.message = field(PG_DIAG_MESSAGE_PRIMARY) + " (" + report.sqlstate + ")";
  return Error(std::move(report));
}

}  // namespace

struct ReplicationStream::State : std::enable_shared_from_this<State> {
  State(runtime::Loop& loop, ConnectOptions options_)
      : options(std::move(options_)), socket(loop.io()), wakeup(loop) {}
  ~State() {
    if (socket.is_open()) socket.release();
    if (conn != nullptr) PQfinish(conn);
    if (frame != nullptr) PQfreemem(frame);
  }

  using Descriptor = boost::asio::posix::basic_stream_descriptor<boost::asio::io_context::executor_type>;

  ConnectOptions options;
  PGconn* conn = nullptr;
  char* frame = nullptr;
  Descriptor socket;
  runtime::Wakeup wakeup;
  bool is_armed = false, is_closed = false, is_ready = false;

  void arm(Descriptor::wait_type what);
  Task<void> wait_for(Descriptor::wait_type what, runtime::SteadyTime deadline);
  Task<void> answer(ExecStatusType wanted);
  void check_open() const;
  [[noreturn]] void lost(const char* fallback) const;
  void consume();
  void flush();
};

void ReplicationStream::State::arm(Descriptor::wait_type what) {
  if (is_armed) return;
  is_armed = true;
  socket.async_wait(what, [self = shared_from_this()](const boost::system::error_code& error) {
    self->is_armed = false;
    if (error) return;
    self->is_ready = true;
    self->wakeup.notify();
  });
}

Task<void> ReplicationStream::State::wait_for(Descriptor::wait_type what, runtime::SteadyTime deadline) {
  const auto self = shared_from_this();
  arm(what);
  co_await wakeup.wait_until(deadline);
  check_open();
}

void ReplicationStream::State::check_open() const {
  if (is_closed || conn == nullptr) throw Error(Kind::unavailable, "the replication connection is closed");
}

void ReplicationStream::State::lost(const char* fallback) const {
  std::string message = conn == nullptr ? "" : PQerrorMessage(conn);
  while (!message.empty() && message.back() == '\n') message.pop_back();
  throw Error(Kind::unavailable, message.empty() ? fallback : message);
}

void ReplicationStream::State::consume() {
  is_ready = false;
  if (PQconsumeInput(conn) != 1) lost("replication connection lost");
}

// The rest is sent with the next call. There always is one, because the server sends keepalives.
void ReplicationStream::State::flush() {
  if (PQflush(conn) < 0) lost("replication connection lost");
}

Task<void> ReplicationStream::State::answer(ExecStatusType wanted) {
  flush();
  bool has_wanted = false;
  std::optional<Error> rejected;
  while (true) {
    while (PQisBusy(conn) != 0) {
      co_await wait_for(descriptor_base::wait_read, base::BootClock::now() + kResponseCheck);
      flush();
      consume();
    }
    const ResultPtr result(PQgetResult(conn), &PQclear);
    if (!result) break;
    const ExecStatusType status = PQresultStatus(result.get());
    if (status == PGRES_FATAL_ERROR) rejected.emplace(rejection(result.get()));
    has_wanted |= status == wanted;
    if (status == PGRES_COPY_BOTH) break;
  }
  if (rejected) throw Error(*rejected);
  if (!has_wanted) lost("unexpected response in replication mode");
}

ReplicationStream::ReplicationStream(runtime::Loop& loop, ConnectOptions options)
    : state_(std::make_shared<State>(loop, std::move(options))) {}

ReplicationStream::~ReplicationStream() {
  close();
}

Task<void> ReplicationStream::connect() {
  const auto state = state_;
  CHECK(state->conn == nullptr);
  const auto deadline = base::BootClock::now() + state->options.connect_timeout;
  state->conn = start_connecting(state->options);
  if (state->conn == nullptr || PQstatus(state->conn) == CONNECTION_BAD) state->lost("cannot connect");
  auto step = PGRES_POLLING_WRITING;
  while (step != PGRES_POLLING_OK) {
    if (step == PGRES_POLLING_FAILED) state->lost("cannot connect");
    const auto what =
        step == PGRES_POLLING_READING ? descriptor_base::wait_read : descriptor_base::wait_write;
    // Another one at each step, perhaps: libpq tries the next address.
    state->socket.assign(PQsocket(state->conn));
    state->is_ready = false;
    while (!state->is_ready) {
      if (base::BootClock::now() >= deadline)
        throw Error(Kind::unavailable, "no replication connection in time");
      co_await state->wait_for(what, deadline);
    }
    state->socket.release();
    step = PQconnectPoll(state->conn);
  }
  PQsetNoticeReceiver(state->conn, ignore_notice, nullptr);
  if (PQsetnonblocking(state->conn, 1) != 0) state->lost("cannot use the replication connection");
  state->socket.assign(PQsocket(state->conn));
}

int ReplicationStream::server_version() const {
  return PQserverVersion(state_->conn);
}

Task<void> ReplicationStream::command(std::string text) {
  const auto state = state_;
  state->check_open();
  if (PQsendQuery(state->conn, text.c_str()) != 1) state->lost("cannot send");
  co_await state->answer(PGRES_TUPLES_OK);
}

Task<void> ReplicationStream::start(std::string command) {
  const auto state = state_;
  state->check_open();
  if (PQsendQuery(state->conn, command.c_str()) != 1) state->lost("cannot send");
  co_await state->answer(PGRES_COPY_BOTH);
}

std::optional<ReplicationStream::Frame> ReplicationStream::next() {
  State& state = *state_;
  state.check_open();
  while (true) {
    if (state.frame != nullptr) PQfreemem(std::exchange(state.frame, nullptr));
    int size = PQgetCopyData(state.conn, &state.frame, 1);
    if (size == 0 && state.is_ready) {
      state.consume();
      size = PQgetCopyData(state.conn, &state.frame, 1);
    }
    if (size == 0) return std::nullopt;
    if (size == -1) {  // the server ends it, with a reason
      const ResultPtr result(PQgetResult(state.conn), &PQclear);
      if (result && PQresultStatus(result.get()) == PGRES_FATAL_ERROR) throw rejection(result.get());
      state.lost("the server has ended the replication");
    }
    if (size < 0) state.lost("replication connection lost");
    const std::string_view all(state.frame, static_cast<size_t>(size));
    if (all.size() >= kKeepaliveSize && all[0] == 'k')
      return Frame{true, Lsn{read_int64(all.data() + 1)}, {}};
    if (all.size() >= kDataHead && all[0] == 'w')
      return Frame{false, Lsn{read_int64(all.data() + 9)}, all.substr(kDataHead)};
  }
}

Task<void> ReplicationStream::wait(runtime::SteadyTime deadline) {
  const auto state = state_;
  state->check_open();
  state->flush();
  co_await state->wait_for(descriptor_base::wait_read, deadline);
}

void ReplicationStream::wake() {
  state_->wakeup.notify();
}

void ReplicationStream::confirm(Lsn done, bool is_reply_wanted) {
  State& state = *state_;
  state.check_open();
  const auto now = base::wall_now().time_since_epoch().count() - kPostgresEpoch;
  std::string message = "r";
  for (int written_flushed_applied = 0; written_flushed_applied < 3; ++written_flushed_applied)
    put_int64(message, static_cast<uint64_t>(done));
  put_int64(message, static_cast<uint64_t>(now));
  message.push_back(is_reply_wanted ? '\1' : '\0');
  if (PQputCopyData(state.conn, message.data(), static_cast<int>(message.size())) < 0)
    state.lost("replication connection lost");
  state.flush();
}

void ReplicationStream::close() {
  State& state = *state_;
  if (std::exchange(state.is_closed, true)) return;
  // The descriptor belongs to libpq: it must be out of the loop before PQfinish closes it.
  if (state.socket.is_open()) state.socket.release();
  if (state.conn != nullptr) PQfinish(std::exchange(state.conn, nullptr));
  state.wakeup.notify();
}

}  // namespace postrider::pg
