// Implements pgtest_fixture.hpp.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cstring>
#include <future>

#include "postrider/api/pgtest_fixture.hpp"
#include "postrider/base/time.hpp"
#include "postrider/config/load.hpp"
#include "postrider/registry/keys.hpp"
#include "support/run.hpp"

namespace postrider::api {

namespace {

using namespace std::chrono_literals;

config::Config default_config() {
  config::Sources nothing;
  nothing.default_files.clear();
  return config::load(nothing).config;
}

publish::PublisherOptions publisher_options(base::RateLimiter& rates) {
  publish::PublisherOptions options;
  options.rates = &rates;
  return options;
}

// A small receive buffer, so that a test that does not read holds the server up.
int send_request(uint16_t port, const std::string& request) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const int buffer_bytes = 16 << 10;
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof buffer_bytes);
  const timeval patience{.tv_sec = 60, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("cannot connect to the API");
  size_t sent = 0;
  while (sent < request.size()) {
    const ssize_t got = send(fd, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
    if (got <= 0) break;  // rejected early; the response says why
    sent += static_cast<size_t>(got);
  }
  return fd;
}

std::string request_text(const ApiServer::Call& call) {
  std::string request = call.method + " " + call.target + " HTTP/1.1\r\nhost: test\r\nconnection: close\r\n";
  if (!call.key.empty()) request += "authorization: Bearer " + call.key + "\r\n";
  request += call.extra_headers;
  if (!call.body.empty())
    request += call.headers + "content-length: " + std::to_string(call.body.size()) + "\r\n";
  return request + "\r\n" + call.body;
}

}  // namespace

std::optional<std::string> Reply::header(std::string_view name) const {
  size_t at = head.find("\r\n");
  while (at != std::string::npos && at + 2 < head.size()) {
    at += 2;
    const size_t end = std::min(head.find("\r\n", at), head.size());
    const std::string line = head.substr(at, end - at);
    if (line.starts_with(std::string(name) + ": ")) return line.substr(name.size() + 2);
    at = head.find("\r\n", at);
  }
  return std::nullopt;
}

boost::json::value Reply::json() const {
  return boost::json::parse(body);
}

std::string Reply::at(std::string_view pointer) const {
  const boost::json::value document = json();
  boost::json::error_code error;
  const boost::json::value* value = document.find_pointer(pointer, error);
  if (!value) return "(nothing)";
  return value->is_string() ? std::string(value->get_string()) : boost::json::serialize(*value);
}

std::string Reply::pointers() const {
  std::string all;
  const boost::json::value document = json();
  const auto* errors = document.as_object().if_contains("errors");
  if (!errors) return "(no errors)";
  for (const auto& error : errors->as_array()) {
    all += std::string_view(error.at("pointer").as_string());
    all += ' ';
  }
  return all;
}

ApiServer::ApiServer(Options options)
    : config_(default_config()),
      guard_(options.guard),
      keys_(*crypto::MasterKeys::parse(crypto::MasterKeys::generate())),
      listener_({.address = "127.0.0.1:0"}) {
  ids_.synchronise(9, base::wall_now(), base::BootClock::now());
  pg::LinkOptions link;
  link.connect.url = options.database_url;
  link.connect.statement_timeout = options.statement_timeout;
  pool_ = std::make_unique<pg::Pool>(loop_, link, 2);
  link.connect = pg::ConnectOptions::engine(options.database_url);
  publish_link_ = std::make_unique<pg::Link>(loop_, link);
  lookups_ = std::make_unique<pg::Link>(loop_, link);
  publisher_ = std::make_unique<publish::Publisher>(loop_, *publish_link_, ids_, no_delivery_, metrics_,
                                                    publisher_options(publish_rates_));
  receiver_ = std::make_unique<inbox::Receiver>(loop_, *publish_link_, ids_, metrics_,
                                                inbox::ReceiverOptions{.buckets = support::buckets});
  if (options.has_resolver) resolver_ = std::make_unique<http::Resolver>(loop_, http::ResolverOptions{});
  client_ = std::make_unique<http::Client>(loop_, guard_, tls_, http::ClientOptions{});
  api_ = std::make_unique<Api>(Services{
      .loop = loop_,
      .pool = *pool_,
      .lookups = *lookups_,
      .registry = {keys_, ids_, support::buckets, config_.endpoints_max},
      .config = config_,
      .guard = guard_,
      .metrics = metrics_,
      .resolver = resolver_.get(),
      .client = client_.get(),
      .publisher = publisher_.get(),
      .receiver = receiver_.get(),
      .waiters = &waiters_,
      .worker = &worker_,
      .publish_rates = &publish_rates_,
      .key_rates = &key_rates_,
      .readiness_note = options.readiness_note,
  });
  server_ = std::make_unique<http::Server>(loop_, listener_, api_->router());
  loop_.post([this] {
    pool_->start();
    lookups_->start();
    publish_link_->start();
    server_->start();
  });
  thread_ = std::thread([this] { loop_.run(); });
  if (options.has_database) wait_for_database();
}

// A busy machine connects slowly, and until then the API responses 503.
void ApiServer::wait_for_database() {
  const base::SteadyTime deadline = base::BootClock::now() + 60s;
  for (bool is_up = false; !is_up && base::BootClock::now() < deadline; std::this_thread::yield()) {
    std::promise<bool> seen;
    loop_.post([&] { seen.set_value(pool_->is_up() && lookups_->is_up()); });
    is_up = seen.get_future().get();
  }
}

runtime::Task<void> ApiServer::stop() {
  server_->stop_accepting();
  waiters_.stop();
  const base::SteadyTime deadline = base::BootClock::now() + 5s;
  co_await server_->drain(deadline);
  if (resolver_) resolver_->close();
  client_->close();
  co_await publisher_->stop();
  co_await receiver_->stop();
  co_await publish_link_->stop();
  co_await pool_->stop();
  co_await lookups_->stop();
  loop_.stop();
}

ApiServer::~ApiServer() {
  loop_.post([this] { group_.spawn(stop()); });
  thread_.join();
}

ApiServer::Open::Open(const ApiServer& server, const Call& call)
    : fd_(send_request(server.listener_.port(), request_text(call))) {}

ApiServer::Open::~Open() {
  close(fd_);
}

bool ApiServer::Open::read_some() {
  char buffer[16384];
  const ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
  if (got < 0) ADD_FAILURE() << "the server neither sends nor ends the connection: " << strerror(errno);
  if (got > 0) text_.append(buffer, static_cast<size_t>(got));
  return got > 0;
}

void ApiServer::Open::read_until(std::string_view text) {
  while (text_.find(text) == std::string::npos)
    if (!read_some()) return ADD_FAILURE() << "no " << text << " in " << text_, void();
}

std::string ApiServer::Open::read_to_end() {
  const base::SteadyTime deadline = base::BootClock::now() + 60s;  // heartbeats could go on for an hour
  while (read_some())
    if (base::BootClock::now() > deadline) {
      ADD_FAILURE() << "the server does not end the connection";
      break;
    }
  return text_;
}

Reply ApiServer::send(const Call& call) const {
  const std::string text = Open(*this, call).read_to_end();
  Reply response;
  const size_t end = text.find("\r\n\r\n");
  if (end == std::string::npos) throw std::runtime_error("no response: " + text);
  response.head = text.substr(0, end);
  response.body = text.substr(end + 4);
  response.status = std::stoi(response.head.substr(9, 3));
  return response;
}

int ApiServer::open_bodies() {
  std::promise<int> seen;
  loop_.post([&] { seen.set_value(api_->services().streams.taken() + api_->services().exports.taken()); });
  return seen.get_future().get();
}

void ApiServer::forget_cached() {
  std::promise<void> done;
  loop_.post([&] {
    registry::Change change;
    change.kind = registry::ChangeKind::other;
    api_->apply({&change, 1});
    done.set_value();
  });
  done.get_future().wait();
}

ApiTest::ApiTest(http::GuardPolicy guard, bool has_resolver) {
  runtime::Loop loop;
  pg::LinkOptions options;
  options.connect.url = database.url();
  pg::Link link(loop, options);
  link.start();
  support::run(loop, link.wait_up(base::BootClock::now() + 30s));
  support::run(loop, registry::ensure_admin_key(link, admin_key));
  support::run(loop, link.stop());
  server = std::make_unique<ApiServer>(ApiServer::Options{database.url(), std::move(guard), has_resolver});
}

std::string ApiTest::make_acme() {
  EXPECT_EQ(post("/v1/tenants", R"({"id": "acme"})").status, 201);
  return "/v1/tenants/acme/endpoints";
}

std::string ApiTest::make_endpoint(const std::string& more) {
  const auto made =
      post("/v1/tenants/acme/endpoints",
           R"({"url": "https://hooks.example.com/in", "event_types": ["invoice.*"])" + more + "}");
  EXPECT_EQ(made.status, 201) << made.body;
  return "/v1/tenants/acme/endpoints/" + made.at("/id");
}

}  // namespace postrider::api
