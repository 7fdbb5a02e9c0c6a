#include "postrider/http/server/connection.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <coroutine>
#include <exception>

#include "postrider/http/server/problem.hpp"
#include "postrider/http/server/request_id.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::http {

namespace asio = boost::asio;
using boost::system::error_code;
using runtime::Task;

namespace {

constexpr size_t kReadBytes = 16 << 10;
constexpr size_t kSendBytesPerTurn = 256 << 10;
constexpr size_t kOutBytesMax =
    256 << 10;  // responses collected before they are sent; the buffer is kept for the next ones
constexpr size_t kLingerBytesMax =
    256 << 10;  // read and dropped after a rejection, before the connection is closed

Response unexpected(const Request& request, const std::string& failure) {
  telemetry::log_error("http_handler_failed")
      .field("request_id", request.id)
      .field("method", method_name(request.method))
      .field("path", request.path)
      .field("error", failure);
  const Problem why{.status = 503,
                    .type = "unexpected",
                    .detail = "Internal error. Give the request ID to the operator of this server.",
                    .retry_after = std::chrono::seconds(5)};
  return problem(request, why);
}

}  // namespace

struct ServerConnection::Read {
  ServerConnection& connection;
  error_code error;
  size_t bytes = 0;

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) {
    connection.socket_.async_read_some(asio::buffer(connection.in_.get(), kReadBytes),
                                       [this, waiting](const error_code& result, size_t count) {
                                         error = result;
                                         bytes = count;
                                         waiting.resume();
                                       });
  }
  bool await_resume() const noexcept { return !error; }
};

struct ServerConnection::Writable {
  ServerConnection& connection;
  error_code error;

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) {
    connection.socket_.async_wait(Socket::wait_write, [this, waiting](const error_code& result) {
      error = result;
      waiting.resume();
    });
  }
  bool await_resume() const noexcept { return !error; }
};

ServerConnection::ServerConnection(ServerContext& context, Socket socket, std::string peer,
                                   std::string counted)
    : context_(context),
      socket_(std::move(socket)),
      peer_(std::move(peer)),
      is_peer_trusted_(context.proxies.trusts(peer_)),
      counted_(std::move(counted)),
      reader_({.bytes_max = context.options.head_bytes_max,
               .fields_max = context.options.fields_max,
               .target_bytes_max = context.options.target_bytes_max}),
      in_(std::make_unique_for_overwrite<char[]>(kReadBytes)),
      head_began_at_(base::BootClock::now()),
      upload_({.window = context.options.body_timeout,
               .bytes_per_second_min = context.options.body_bytes_per_second_min}) {}

Task<void> ServerConnection::serve() {
  while (!is_closing_) {
    advance();
    if (reader_.stage() == RequestReader::Stage::complete) {
      co_await answer();
    } else if (reader_.stage() == RequestReader::Stage::rejected) {
      co_await reject();
    } else if (reader_.stage() == RequestReader::Stage::decide) {
      co_await admit();
    } else {
      const bool received = co_await receive();
      if (!received) is_closing_ = true;
    }
  }
  co_await flush();
  upload_.end();
  end_counting();
  error_code ignored;
  socket_.close(ignored);
}

Task<void> ServerConnection::serve_rejection(RequestError rejection) {
  Problem why{.status = rejection.status,
              .detail = std::string(rejection.detail),
              .retry_after = std::chrono::seconds(1)};
  Response response = problem(why, "");
  append_response_to(response, true);
  co_await flush();
  co_await linger();
  error_code ignored;
  socket_.close(ignored);
}

void ServerConnection::advance() {
  using Stage = RequestReader::Stage;
  while (in_begin_ < in_end_ || reader_.stage() == Stage::decide) {
    if (reader_.stage() == Stage::decide) {
      if (reader_.may_have_body_over(kOrdinaryBodyBytesMax)) return;
      accept_body(context_.handler.body_bytes_max(reader_.request()));
      continue;
    }
    if (reader_.stage() == Stage::complete || reader_.stage() == Stage::rejected) return;
    if (!reader_.has_started()) head_began_at_ = base::BootClock::now();
    const bool is_body = reader_.stage() == Stage::body;
    const size_t taken = reader_.feed(std::string_view(in_.get() + in_begin_, in_end_ - in_begin_));
    in_begin_ += taken;
    if (is_body && !upload_.received(reader_.body_bytes(), base::BootClock::now()))
      reader_.reject({503, "The server is receiving too many large requests. Try again later."});
  }
}

// A large body is read only after the handler has seen the head.
Task<void> ServerConnection::admit() {
  Request& head = reader_.request();
  identify(head);
  if (!out_.empty()) flush_soon();
  Admission admission = co_await ask_handler(head);
  if (admission.rejection) {
    rejection_ = std::move(admission.rejection);
    reader_.reject({rejection_->status, ""});
    co_return;
  }
  if (admission.owner.empty()) {
    upload_.charge(context_.listener->unauthenticated_bodies, client_of(head.remote_address));
  } else {
    upload_.charge(context_.listener->bodies, std::move(admission.owner));
    end_counting();
  }
  accept_body(admission.body_bytes_max);
}

Task<Admission> ServerConnection::ask_handler(Request& head) {
  std::string failure;
  try {
    Admission admission = co_await context_.handler.admit(head);
    co_return admission;
  } catch (const std::exception& error) {
    failure = error.what();
  }
  Admission rejected;
  rejected.rejection = unexpected(head, failure);
  co_return rejected;
}

void ServerConnection::accept_body(size_t asked) {
  reader_.accept_body(asked != 0 ? asked : context_.options.body_bytes_max);
  if (reader_.stage() != RequestReader::Stage::body) return;
  upload_.start(base::BootClock::now());
  if (reader_.expects_continue() && in_begin_ == in_end_) out_ += "HTTP/1.1 100 Continue\r\n\r\n";
}

void ServerConnection::end_counting() {
  if (!counted_.empty()) context_.listener->release(counted_);
  counted_.clear();
}

base::SteadyTime ServerConnection::read_deadline() const {
  const ServerOptions& options = context_.options;
  if (reader_.stage() == RequestReader::Stage::body) return upload_.deadline();
  if (reader_.has_started()) return head_began_at_ + options.head_timeout;
  return base::BootClock::now() + (is_first_request_ ? options.head_timeout : options.idle_timeout);
}

Task<bool> ServerConnection::receive() {
  if (!out_.empty()) {
    const bool sent = co_await flush();
    if (!sent) co_return false;
  }
  if (is_cut_ || (context_.is_draining && !reader_.has_started())) co_return false;
  in_begin_ = in_end_ = 0;
  is_expired_ = false;
  is_receiving_ = true;
  deadline_ = read_deadline();
  Read read{.connection = *this, .error = {}};
  const bool received = co_await read;
  deadline_ = base::SteadyTime::max();
  is_receiving_ = false;
  if (received) {
    in_end_ = read.bytes;
    co_return true;
  }
  if (!is_expired_ || !reader_.has_started() || is_cut_) co_return false;
  reader_.reject({408, "The request did not arrive in time."});
  co_return true;
}

// The rest of a large response waits for its next turn: a socket's buffer may take megabytes, and copying
// them takes milliseconds.
bool ServerConnection::send_some() {
  const size_t end = std::min(out_.size(), out_sent_ + kSendBytesPerTurn);
  while (out_sent_ < end) {
    const ssize_t sent = ::send(socket_.native_handle(), out_.data() + out_sent_, end - out_sent_,
                                MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    out_sent_ += static_cast<size_t>(sent);
  }
  if (end < out_.size()) return true;
  out_.clear();
  if (out_.capacity() > kOutBytesMax) out_ = std::string();
  out_sent_ = 0;
  return true;
}

Task<bool> ServerConnection::flush() {
  while (!is_cut_) {
    if (!send_some()) co_return false;
    if (out_.empty()) co_return true;
    deadline_ = base::BootClock::now() + context_.options.write_timeout;
    Writable writable{.connection = *this, .error = {}};
    const bool is_writable = co_await writable;
    deadline_ = base::SteadyTime::max();
    if (!is_writable) co_return false;
  }
  co_return false;
}

// Responses are sent together. If the next handler does not finish within this turn of the loop, the earlier
// ones are sent without it.
void ServerConnection::flush_soon() {
  if (is_flush_posted_) return;
  is_flush_posted_ = true;
  asio::post(socket_.get_executor(), [weak = weak_from_this()] {
    const auto connection = weak.lock();
    if (!connection) return;
    connection->is_flush_posted_ = false;
    if (!connection->is_cut_ && connection->socket_.is_open()) connection->send_some();
  });
}

void ServerConnection::identify(Request& request) {
  request.loop = &context_.loop;
  request.remote_address = is_peer_trusted_ ? context_.proxies.client_address(peer_, request.fields) : peer_;
  const auto given_id = request.header("x-request-id");
  if (given_id && is_request_id(*given_id))
    request.id = *given_id;
  else
    context_.make_request_id(request.id);
}

Task<void> ServerConnection::answer() {
  Request& request = reader_.request();
  identify(request);
  if (!out_.empty()) flush_soon();

  Response response = co_await respond(request);
  if (request.is_authenticated) end_counting();
  const bool close = response.close || !reader_.keeps_alive() || context_.is_draining;
  const bool close_ends_body = response.stream && reader_.is_http_1_0();
  if (response.stream && request.method != Method::head) {
    is_closing_ = close || close_ends_body;
    append_response_to(response, is_closing_);
    co_await stream(response);
  } else {
    co_await compress_if_accepted(response, request, context_.loop);
    is_closing_ = close;
    append_response_to(response, close);
  }
  reader_.reset();
  upload_.end();
  is_first_request_ = false;
  if (out_.size() > kOutBytesMax) {
    const bool sent = co_await flush();
    if (!sent) is_closing_ = true;
  }
}

Task<Response> ServerConnection::respond(Request& request) {
  std::string failure;
  try {
    Response response = co_await context_.handler.handle(request);
    co_return response;
  } catch (const std::exception& error) {
    failure = error.what();
  } catch (...) {
    failure = "not a std::exception";
  }
  co_return unexpected(request, failure);
}

void ServerConnection::append_response_to(Response& response, bool close) {
  const Request& request = reader_.request();
  const ResponseFraming framing{.request_id = request.id,
                                .date = context_.date,
                                .is_head = request.method == Method::head,
                                .is_http_1_0 = reader_.is_http_1_0(),
                                .close = close};
  append_response(out_, response, framing);
  context_.requests[static_cast<size_t>(std::clamp(response.status / 100, 1, 5) - 1)].add();
  telemetry::log_debug("http_request")
      .field("request_id", request.id)
      .field("method", method_name(request.method))
      .field("path", request.path)
      .field("status", response.status)
      .field("response_bytes", response.body.size())
      .field("remote_address", request.remote_address);
}

class ServerConnection::Stream : public BodyStream {
 public:
  explicit Stream(ServerConnection& connection) : connection_(connection) {}

  Task<bool> write(std::string_view piece) override {
    if (is_closing()) co_return false;
    if (connection_.reader_.is_http_1_0())
      connection_.out_ += piece;
    else if (!piece.empty())
      append_chunk(connection_.out_, piece);
    const bool sent = co_await connection_.flush();
    if (!sent) is_gone_ = true;
    co_return sent;
  }
  bool is_closing() const override {
    return is_gone_ || connection_.is_cut_ || connection_.context_.is_draining ||
           connection_.is_client_gone();
  }
  void cut() override { connection_.cut(); }

 private:
  ServerConnection& connection_;
  bool is_gone_ = false;
};

bool ServerConnection::is_client_gone() const {
  char byte;
  const ssize_t peeked =
      ::recv(const_cast<Socket&>(socket_).native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT | MSG_NOSIGNAL);
  return peeked == 0 || (peeked < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

Task<void> ServerConnection::stream(Response& response) {
  Stream body(*this);
  bool is_whole = co_await flush();
  if (is_whole) {
    try {
      co_await response.stream(body);
    } catch (const std::exception& error) {
      is_whole = false;
      telemetry::log_error("http_stream_failed")
          .field("request_id", reader_.request().id)
          .field("path", reader_.request().path)
          .field("error", error.what());
    }
  }
  // Without the last chunk the client knows that the response is incomplete.
  if (is_whole && !reader_.is_http_1_0()) out_ += "0\r\n\r\n";
  if (!is_whole) is_closing_ = true;
}

Task<void> ServerConnection::reject() {
  const RequestError rejection = reader_.rejection();
  Request& request = reader_.request();
  Response response;
  if (rejection_) {
    response = std::move(*rejection_);
    rejection_.reset();
  } else {
    context_.make_request_id(request.id);
    Problem why{.status = rejection.status, .detail = std::string(rejection.detail)};
    if (rejection.status == 503) why.retry_after = std::chrono::seconds(1);
    response = problem(request, why);
  }
  append_response_to(response, true);
  is_closing_ = true;
  reader_.reset();
  upload_.end();
  const bool sent = co_await flush();
  if (sent) co_await linger();
}

// Closing with unread input makes the kernel send a reset, which can overtake the response. So shut down the
// sending side, then read and drop what still arrives for a short while.
Task<void> ServerConnection::linger() {
  error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  const base::SteadyTime until = base::BootClock::now() + context_.options.linger_timeout;
  for (size_t thrown_away = 0; thrown_away < kLingerBytesMax && !is_cut_ && !context_.is_draining;) {
    deadline_ = until;
    Read read{.connection = *this, .error = {}};
    const bool received = co_await read;
    deadline_ = base::SteadyTime::max();
    if (!received) break;
    thrown_away += read.bytes;
  }
}

void ServerConnection::expire(base::SteadyTime now) {
  if (now < deadline_) return;
  is_expired_ = true;
  error_code ignored;
  socket_.cancel(ignored);
}

void ServerConnection::drain() {
  if (!is_receiving_ || reader_.has_started()) return;
  error_code ignored;
  socket_.cancel(ignored);
}

void ServerConnection::cut() {
  is_cut_ = true;
  error_code ignored;
  socket_.close(ignored);
}

}  // namespace postrider::http
