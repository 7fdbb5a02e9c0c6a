// `postrider relay`: the relay at the application's side. It knows the application's database and the API of
// a postrider; that postrider needs no access to the database.
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <future>
#include <iterator>

#include "postrider/api/wire/metrics.hpp"
#include "postrider/base/host_name.hpp"
#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"
#include "postrider/cli/open_policy.hpp"
#include "postrider/config/values.hpp"
#include "postrider/http/server/router.hpp"
#include "postrider/outbox/http_sink.hpp"
#include "postrider/outbox/install.hpp"
#include "postrider/outbox/supervisor.hpp"
#include "postrider/pg/display_url.hpp"
#include "postrider/runtime/loop_thread.hpp"
#include "postrider/runtime/run_blocking.hpp"
#include "postrider/server/signals.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::cli {

namespace {

using namespace std::chrono_literals;
using runtime::Task;

constexpr auto kLease = 30s;     // longer than a call of the API may take
constexpr auto kDrainWait = 1s;  // for readers of the metrics
constexpr auto kNameMax = size_t{64};
constexpr auto kPollMin = 10ms, kPollMax = 60'000ms;

struct RelaySettings {
  std::string database_url, display_url, key_file, name, listen;
  http::Url target;
  outbox::RelayOptions relay;
  outbox::DrainLimits limits;
  http::TlsOptions tls;
};

std::string trimmed_text(const std::string& path) {
  return std::string(config::trimmed(read_text(path)));
}

std::chrono::milliseconds read_duration(Invocation& in, std::string_view name) {
  const auto value = config::parse_duration(*in.value(name));
  if (!value) throw Misuse(std::string(name) + " " + value.error() + ".");
  return *value;
}

http::Url read_target(const std::string& text) {
  std::string whole = text;
  while (whole.ends_with('/')) whole.pop_back();
  auto url = http::parse_url(whole + "/v1/events/batch");
  if (!url) throw Misuse("--to: " + std::string(http::describe(url.error())));
  return std::move(*url);
}

RelaySettings read_settings(Invocation& in) {
  RelaySettings settings;
  if (const auto file = in.value("--database-url-file")) settings.database_url = trimmed_text(*file);
  if (const auto url = in.value("--database-url")) settings.database_url = *url;
  if (settings.database_url.empty())
    throw Misuse("--database-url or --database-url-file is required: the application's database.");
  const auto shown = pg::display_url(settings.database_url);
  if (!shown) throw Misuse("--database-url must be a Postgres connection string.");
  settings.display_url = *shown;
  if (!in.value("--to")) throw Misuse("--to is required: the URL of the postrider that receives the events.");
  settings.target = read_target(*in.value("--to"));
  if (!in.value("--key-file"))
    throw Misuse("--key-file is required: a file with an API key that may publish.");
  settings.key_file = *in.value("--key-file");
  if (trimmed_text(settings.key_file).empty()) throw Misuse("The file " + settings.key_file + " is empty.");
  settings.name = in.value("--name").value_or("outbox");
  if (settings.name.empty() || settings.name.size() > kNameMax)
    throw Misuse("--name must have 1 to 64 characters.");
  settings.listen = in.value("--listen").value_or("");
  settings.tls.extra_ca_file = in.value("--ca-file").value_or("");
  settings.relay.name = settings.name;
  settings.relay.owner = "relay " + base::host_name() + " " + std::to_string(::getpid());
  settings.relay.lease = kLease;
  settings.relay.may_be_notified = !in.has("--no-notify");
  settings.relay.listen = outbox::listen_link(settings.database_url);
  if (in.has("--poll")) settings.relay.poll = read_duration(in, "--poll");
  if (settings.relay.poll < kPollMin || settings.relay.poll > kPollMax)
    throw Misuse("--poll must be from 10ms to 60s.");
  settings.limits.archive_dir = in.value("--archive-dir").value_or("");
  if (in.has("--retain"))
    settings.limits.retain = std::chrono::duration_cast<std::chrono::seconds>(read_duration(in, "--retain"));
  return settings;
}

// A key that was exchanged is used from the next call on; while the file is not there, the old one.
class KeyFile {
 public:
  explicit KeyFile(std::string path) : path_(std::move(path)) {}
  std::string read() {
    std::ifstream file(path_, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::string_view key = config::trimmed(text);
    if (!key.empty() && key.find_first_of("\r\n") == std::string_view::npos) last_ = key;
    return last_;
  }

 private:
  std::string path_, last_;
};

class ApplicationRelay {
 public:
  explicit ApplicationRelay(const RelaySettings& settings)
      : key_(settings.key_file),
        series_(metrics_, settings.name),
        guard_(open_policy()),
        tls_(settings.tls),
        client_(loop_, guard_, tls_, {}),
        sink_(loop_, client_, {.url = settings.target, .key = [this] { return key_.read(); }}),
        link_(loop_, outbox::relay_link(settings.database_url)),
        lease_(link_, outbox::relay_lease(settings.relay)),
        drainer_(settings.name, link_, sink_, series_, fenced(settings.limits)),
        relay_(loop_, link_, lease_, drainer_, series_, settings.relay) {
    link_.on_down([this, name = settings.name](const pg::Error& error) {
      if (is_stopping_) return;
      telemetry::log_warn("outbox_unreachable").field("outbox", name).field("error", error.what());
    });
    if (settings.listen.empty()) return;
    router_.add({http::Method::get, "/healthz", [](http::Request&) { return text(200, "ok\n"); }});
    router_.add({http::Method::get, "/readyz", [this](http::Request&) { return ready(); }});
    router_.add(
        {http::Method::get, "/metrics", [this](http::Request&) { return text(200, metrics_.text()); }});
    listener_ = std::make_unique<http::Listener>(http::Listener::Options{.address = settings.listen});
    server_ = std::make_unique<http::Server>(loop_, *listener_, router_, api::server_metrics(metrics_));
  }

  void start() {
    loop_.post([this] {
      link_.start();
      relay_.start();
      if (server_) server_->start();
    });
    thread_.start();
  }

  // Rows that are being relayed are completed and marked.
  void stop() {
    thread_.run([this] { return drain(); });
    thread_.stop();
  }

  std::string address() const { return listener_ ? listener_->address() : ""; }

 private:
  outbox::DrainLimits fenced(outbox::DrainLimits limits) const {
    limits.lease = &lease_;
    return limits;
  }
  static Task<http::Response> text(int status, std::string body) {
    co_return http::Response::text(status, std::move(body));
  }
  Task<http::Response> ready() {
    if (!link_.is_up()) return text(503, "no connection to the outbox's database\n");
    if (!sink_.is_reachable()) return text(503, "the events cannot be published at the moment\n");
    return text(200, relay_.is_active() ? "ready\n" : "ready, another one relays\n");
  }
  Task<void> drain() {
    sink_.stop();
    co_await relay_.stop();
    is_stopping_ = true;
    co_await link_.stop();
    client_.close();
    if (!server_) co_return;
    server_->stop_accepting();
    const auto deadline = base::BootClock::now() + kDrainWait;
    co_await server_->drain(deadline);
  }

  telemetry::Metrics metrics_;
  KeyFile key_;
  outbox::OutboxMetrics series_;
  http::AddressGuard guard_;
  http::TlsContext tls_;
  runtime::LoopThread thread_;
  runtime::Loop& loop_ = thread_.loop;
  http::Client client_;
  outbox::HttpSink sink_;
  pg::Link link_;
  pg::SessionLease lease_;
  outbox::OtherDatabaseDrainer drainer_;
  outbox::Relay relay_;
  http::Router router_;
  std::unique_ptr<http::Listener> listener_;
  std::unique_ptr<http::Server> server_;
  bool is_stopping_ = false;
};

telemetry::Log::Options log_settings(Invocation& in) {
  telemetry::Log::Options options{.fd = STDERR_FILENO,
                                  .format = telemetry::default_log_format(STDERR_FILENO)};
  if (const auto format = in.value("--log-format"))
    options.format = telemetry::parse_log_format(*format).value_or(options.format);
  return options;
}

// While the database cannot be reached this is not known, and the relay waits for it.
void check_installed(const std::string& url) {
  runtime::Loop loop;
  try {
    const auto obstacle = runtime::run_blocking(loop, outbox::relay_obstacle(loop, url));
    if (obstacle) throw Misuse(*obstacle);
  } catch (const pg::Error& error) {
    telemetry::log_warn("outbox_unreachable").field("error", error.what());
  }
}

void stop_or_quit(ApplicationRelay& relay, server::StopSignals& signals, telemetry::Log& log) {
  auto stopped = std::async(std::launch::async, [&relay] { relay.stop(); });
  while (stopped.wait_for(0s) != std::future_status::ready) {
    if (!signals.wait_for(50ms)) continue;
    telemetry::log_warn("stopped_at_once")
        .field("note", "events that were being published are published again after the next start");
    log.flush();
    _exit(stopped_at_once);
  }
  stopped.get();
}

int run_relay(Invocation& in) {
  const RelaySettings settings = read_settings(in);
  server::StopSignals signals;
  telemetry::Log log(log_settings(in));
  check_installed(settings.database_url);
  ApplicationRelay relay(settings);
  relay.start();
  telemetry::log_info("started")
      .field("outbox", settings.name)
      .field("database", settings.display_url)
      .field("to", settings.target.origin)
      .field("listen", relay.address());
  std::optional<server::StopSignal> signal;
  while (!(signal = signals.wait_for(500ms))) {
  }
  telemetry::log_info("stopping").field("signal", signal->number == SIGINT ? "SIGINT" : "SIGTERM");
  stop_or_quit(relay, signals, log);
  telemetry::log_info("stopped");
  return done;
}

}  // namespace

Command relay_command() {
  return command(
             "relay", "Relay an application's outbox to a remote postrider over HTTP",
             {option("--database-url", "URL", "Database of the application, with the outbox installed"),
              option("--database-url-file", "FILE", "File with this URL, to keep it out of the process list"),
              option("--to", "URL", "URL of the postrider that receives the events"),
              option("--key-file", "FILE",
                     "File with an API key that may publish; read again before each request"),
              option("--ca-file", "FILE", "PEM file with additional trusted CA certificates"),
              option("--name", "NAME", "Name of the outbox in logs and metrics (default: outbox)"),
              option("--poll", "DURATION",
                     "How often to look for rows without a notification (default: 500ms)"),
              flag("--no-notify", "Never use NOTIFY in publish(); rows are found by polling"),
              option("--retain", "DURATION", "How long processed rows are kept (default: 7d)"),
              option("--archive-dir", "DIRECTORY",
                     "Archive rows here as compressed NDJSON before they are deleted"),
              option("--listen", "HOST:PORT", "Serve /metrics, /healthz and /readyz at this address"),
              choice("--log-format", {"json", "text"},
                     "Log format (default: text on a terminal, otherwise json)")},
             run_relay, Needs::nothing)
      .example(
          "postrider relay --database-url-file db-url.txt --to https://postrider.example.com --key-file "
          "key.txt");
}

}  // namespace postrider::cli
