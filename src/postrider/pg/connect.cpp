// Opens a connection: PQconnectPoll driven by the loop.
#include <array>
#include <cctype>
#include <sstream>

#include "postrider/base/check.hpp"
#include "postrider/pg/session.hpp"

namespace postrider::pg {

namespace {

using boost::asio::posix::descriptor_base;

void ignore_notice(void*, const PGresult*) {}

// Defaults come before dbname, so that the URL overrides them.
PGconn* start(const ConnectOptions& options) {
  const std::string tcp_user_timeout = std::to_string(options.tcp_user_timeout.count());
  const std::array<const char*, 10> keywords{"application_name",
                                             "client_encoding",
                                             "target_session_attrs",
                                             "tcp_user_timeout",
                                             "keepalives_idle",
                                             "keepalives_interval",
                                             "keepalives_count",
                                             "gssencmode",
                                             "dbname",
                                             nullptr};
  const std::array<const char*, 10> values{options.application_name.c_str(),
                                           "UTF8",
                                           "read-write",
                                           tcp_user_timeout.c_str(),
                                           "10",
                                           "3",
                                           "3",
                                           "disable",
                                           options.url.c_str(),
                                           nullptr};
  return PQconnectStartParams(keywords.data(), values.data(), 1);
}

constexpr std::string_view state_start = ":  ";  // after the severity
constexpr size_t state_length = 5;

// Where a line of a verbose message has its SQLSTATE: `… FATAL:  3D000: database "x" does not exist`.
size_t find_state(std::string_view line) {
  const size_t start = line.find(state_start);
  if (start == std::string_view::npos) return start;
  const size_t at = start + state_start.size();
  const std::string_view state = line.substr(at, state_length);
  const auto is_part = [](unsigned char c) { return std::isdigit(c) != 0 || std::isupper(c) != 0; };
  const bool is_state = std::all_of(state.begin(), state.end(), is_part);
  return is_state && line.substr(at + state_length, 2) == ": " ? at : std::string_view::npos;
}

// The text of a brief message, and the state. There is no state if several hosts were tried and failed
// differently.
Error::Report brief(const std::string& verbose) {
  Error::Report report;
  bool do_agree = true;
  std::istringstream lines(verbose);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("LOCATION:")) continue;
    if (const size_t at = find_state(line); at != std::string::npos) {
      const std::string state = line.substr(at, state_length);
      do_agree = do_agree && (report.sqlstate.empty() || report.sqlstate == state);
      report.sqlstate = state;
      line.erase(at, state_length + 2);
    }
    report.message += (report.message.empty() ? "" : "\n") + line;
  }
  if (!do_agree) report.sqlstate.clear();
  return report;
}

}  // namespace

// The error of a failed connect, with the SQLSTATE if the server rejected it.
Error Session::rejected() const {
  return Error(Kind::unknown, brief(lost("cannot connect").what()));
}

UnitPtr Session::connect() {
  CHECK(conn_ == nullptr);
  connecting_ = std::make_shared<Unit>(Unit::Work::batch);
  const UnitPtr unit = connecting_;
  if (closed_by_) {  // before it began
    unit->error = Error(Kind::unavailable, closed_by_->what());
    unit->done.set(true);
    return unit;
  }
  conn_ = start(options_);
  PQsetErrorVerbosity(conn_, PQERRORS_VERBOSE);  // libpq has no other way to get the SQLSTATE
  if (conn_ == nullptr || PQstatus(conn_) == CONNECTION_BAD)
    fail(rejected());
  else
    wait_connect(descriptor_base::wait_write);
  return unit;
}

void Session::set_connect_deadline() {
  if (options_.connect_timeout.count() == 0) return;
  deadline_.call_after(options_.connect_timeout, [this] { fail_if_open("no connection in time"); });
}

void Session::wait_connect(Descriptor::wait_type what) {
  // The socket may be another one at each step: libpq tries the next address or host.
  socket_.assign(PQsocket(conn_));
  socket_.async_wait(what, [self = shared_from_this()](const boost::system::error_code& error) {
    if (error || self->conn_ == nullptr) return;
    self->socket_.release();
    self->poll_connect();
  });
}

void Session::poll_connect() {
  switch (PQconnectPoll(conn_)) {
    case PGRES_POLLING_READING:
      return wait_connect(descriptor_base::wait_read);
    case PGRES_POLLING_WRITING:
      return wait_connect(descriptor_base::wait_write);
    case PGRES_POLLING_OK:
      return established();
    default:
      return fail(rejected());
  }
}

void Session::established() {
  PQsetErrorVerbosity(conn_, PQERRORS_DEFAULT);
  PQsetNoticeReceiver(conn_, ignore_notice, nullptr);
  if (PQsetnonblocking(conn_, 1) != 0 || PQenterPipelineMode(conn_) != 1)
    return fail(lost("cannot use pipeline mode"));
  server.version = PQserverVersion(conn_);
  server.backend_pid = PQbackendPID(conn_);
  socket_.assign(PQsocket(conn_));
  wait_readable();
  finished_.push_back(std::exchange(connecting_, nullptr));
  deliver();
}

}  // namespace postrider::pg
