#include "postrider/http/server/server.hpp"

#include <fcntl.h>
#include <sys/random.h>

#include <algorithm>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <coroutine>
#include <system_error>
#include <unordered_set>

#include "postrider/base/check.hpp"
#include "postrider/http/server/connection.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::http {

runtime::Task<Admission> Handler::admit(Request& head) {
  Admission admission;
  admission.body_bytes_max = body_bytes_max(head);
  co_return admission;
}

namespace asio = boost::asio;
using boost::system::error_code;
using runtime::Task;
using std::chrono::milliseconds;

namespace {

using Acceptor = asio::basic_socket_acceptor<asio::ip::tcp, asio::io_context::executor_type>;

constexpr size_t kRejectingMax = 64;       // connections over the limit that get a 503 at the same time
constexpr milliseconds kAcceptPause{100};  // after a failed accept (out of descriptors)
constexpr milliseconds kSweepMin{5}, kSweepMax{250};

milliseconds sweep_interval(const ServerOptions& options) {
  const milliseconds shortest = std::min({options.head_timeout, options.body_timeout, options.write_timeout,
                                          options.idle_timeout, options.linger_timeout});
  return std::clamp(shortest / 4, kSweepMin, kSweepMax);
}

uint64_t random_seed() {
  uint64_t seed = 0;
  CHECK(::getrandom(&seed, sizeof seed, 0) == static_cast<ssize_t>(sizeof seed));
  return seed;
}

int duplicate(int fd) {
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0)
    throw std::system_error(errno, std::generic_category(), "cannot duplicate the listening socket");
  return copy;
}

struct Accept {
  Acceptor& acceptor;
  Socket& socket;
  error_code error;

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) {
    acceptor.async_accept(socket, [this, waiting](const error_code& result) {
      error = result;
      waiting.resume();
    });
  }
  bool await_resume() const noexcept { return !error; }
};

std::string address_of(const Socket& socket) {
  error_code error;
  const auto address = socket.remote_endpoint(error).address();
  if (error) return "";
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
  return address.to_string();
}

}  // namespace

struct Server::State {
  State(runtime::Loop& loop, std::shared_ptr<ListenerState> listener, Handler& handler,
        const ServerMetrics& metrics, ServerOptions options)
      : context{.loop = loop,
                .handler = handler,
                .options = options,
                .listener = std::move(listener),
                .proxies = TrustedProxies(options.trusted_proxies),
                .uncounted = TrustedProxies(options.uncounted_networks),
                .requests = metrics.requests,
                .date = {},
                .request_seed = random_seed()},
        connection_gauge(metrics.connections),
        acceptor(loop.io().get_executor()),
        accept_again(loop),
        sweep_timer(loop),
        cut_timer(loop) {}

  Task<void> accept();
  void admit(Socket socket);
  Task<void> serve(std::shared_ptr<ServerConnection> connection);
  Task<void> turn_away(std::shared_ptr<ServerConnection> connection, RequestError rejection);
  void sweep();

  ServerContext context;
  telemetry::Gauge connection_gauge;
  Acceptor acceptor;
  bool is_accepting = false;
  runtime::Wakeup accept_again;
  runtime::Timer sweep_timer, cut_timer;
  std::unordered_set<ServerConnection*> connections;  // also those being turned away
  size_t turning_away = 0;
  runtime::TaskGroup tasks;
};

Task<void> Server::State::accept() {
  while (is_accepting) {
    Socket socket(context.loop.io().get_executor());
    Accept next{.acceptor = acceptor, .socket = socket, .error = {}};
    const bool accepted = co_await next;
    if (!is_accepting) break;
    if (accepted) {
      admit(std::move(socket));
      continue;
    }
    if (next.error == asio::error::connection_aborted) continue;
    telemetry::log_warn("http_accept_failed").field("error", next.error.message());
    co_await accept_again.wait_for(kAcceptPause);
  }
}

void Server::State::admit(Socket socket) {
  error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  std::string peer = address_of(socket);
  ListenerState& listener = *context.listener;
  RequestError rejection{503, "The server has too many open connections. Try again later."};
  std::string counted;
  if (listener.options.connections_per_address_max > 0 && !context.proxies.trusts(peer) &&
      !context.uncounted.trusts(peer))
    counted = client_of(peer);
  bool has_room = listener.connections.fetch_add(1) < listener.options.connections_max;
  if (has_room && !counted.empty() && !listener.take(counted)) {
    has_room = false;
    rejection.detail =
        "There are too many open connections from this address that have not sent an authenticated request.";
  }
  if (!has_room) {
    --listener.connections;
    counted.clear();
    if (turning_away >= kRejectingMax) return;
  }
  auto connection =
      std::make_shared<ServerConnection>(context, std::move(socket), std::move(peer), std::move(counted));
  connections.insert(connection.get());
  tasks.spawn(has_room ? serve(std::move(connection)) : turn_away(std::move(connection), rejection));
}

Task<void> Server::State::serve(std::shared_ptr<ServerConnection> connection) {
  connection_gauge.add(1);
  co_await connection->serve();
  connection_gauge.add(-1);
  --context.listener->connections;
  connections.erase(connection.get());
}

Task<void> Server::State::turn_away(std::shared_ptr<ServerConnection> connection, RequestError rejection) {
  ++turning_away;
  co_await connection->serve_rejection(rejection);
  --turning_away;
  connections.erase(connection.get());
}

void Server::State::sweep() {
  const auto now = base::BootClock::now();
  for (ServerConnection* connection : connections) connection->expire(now);
  context.date = http_date(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()));
  sweep_timer.call_after(sweep_interval(context.options), [this] { sweep(); });
}

Server::Server(runtime::Loop& loop, const Listener& listener, Handler& handler, ServerMetrics metrics,
               ServerOptions options)
    : state_(std::make_unique<State>(loop, listener.state_, handler, metrics, std::move(options))) {}

Server::~Server() {
  CHECK(state_->tasks.running() == 0);
}

void Server::start() {
  const auto& listener = *state_->context.listener;
  state_->acceptor.assign(listener.endpoint.protocol(), duplicate(listener.fd));
  state_->is_accepting = true;
  state_->sweep();
  state_->tasks.spawn(state_->accept());
}

void Server::stop_accepting() {
  state_->is_accepting = false;
  error_code ignored;
  state_->acceptor.close(ignored);
  state_->accept_again.notify();
}

Task<void> Server::drain(base::SteadyTime deadline) {
  stop_accepting();
  state_->context.is_draining = true;
  for (ServerConnection* connection : state_->connections) connection->drain();
  state_->cut_timer.call_at(deadline, [state = state_.get()] {
    for (ServerConnection* connection : state->connections) connection->cut();
  });
  auto all_ended = state_->tasks.join();
  co_await all_ended;
  state_->cut_timer.cancel();
  state_->sweep_timer.cancel();
  // The last task resumed this one before it was destroyed itself: let it unwind first.
  runtime::OneShot<bool> unwound;
  state_->context.loop.post([&unwound] { unwound.set(true); });
  co_await unwound;
}

size_t Server::connections() const {
  return state_->connections.size();
}

}  // namespace postrider::http
