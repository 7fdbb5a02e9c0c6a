#include "postrider/server/serve.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <future>
#include <memory>
#include <vector>

#include "postrider/api/resources/configured_sources.hpp"
#include "postrider/base/exit_code.hpp"
#include "postrider/base/version.hpp"
#include "postrider/registry/keys.hpp"
#include "postrider/registry/startup.hpp"
#include "postrider/runtime/run_blocking.hpp"
#include "postrider/server/api_thread.hpp"
#include "postrider/server/background_thread.hpp"
#include "postrider/server/database.hpp"
#include "postrider/server/logging.hpp"
#include "postrider/server/relay_thread.hpp"
#include "postrider/server/service_manager.hpp"
#include "postrider/server/signals.hpp"
#include "postrider/upkeep/upkeep.hpp"

namespace postrider::server {

namespace {

using namespace std::chrono_literals;

constexpr auto kDatabaseWait = 60s;
constexpr auto kStartGrace = 1s;  // after a signal

// Values that are read from the database before anything is served.
struct Prepared {
  int buckets = 0;
  std::optional<std::string> new_admin_key;
};

runtime::Task<Prepared> prepare(pg::Link& link, const config::Config& config,
                                const crypto::MasterKeys& keys) {
  Prepared prepared;
  const auto deadline = base::BootClock::now() + kDatabaseWait;
  co_await link.wait_up(deadline);
  co_await registry::verify_master_key(link, keys);
  const int days_back = upkeep::days_back(upkeep::RetentionOptions::from(config));
  co_await upkeep::create_partitions(link, days_back);
  prepared.buckets = co_await registry::read_buckets(link);
  prepared.new_admin_key = co_await registry::ensure_admin_key(link, config.admin_key);
  co_return prepared;
}

// A link is stopped before it goes, also when something went wrong.
runtime::Task<Prepared> prepare_and_stop(pg::Link& link, const config::Config& config,
                                         const crypto::MasterKeys& keys) {
  Prepared prepared;
  std::exception_ptr error;
  link.start();
  try {
    prepared = co_await prepare(link, config, keys);
  } catch (...) {
    error = std::current_exception();
  }
  co_await link.stop();
  if (error) std::rethrow_exception(error);
  co_return prepared;
}

Prepared prepare_database(const std::string& url, const config::Config& config,
                          const crypto::MasterKeys& keys) {
  runtime::Loop loop;
  pg::LinkOptions options;
  options.connect.url = url;
  pg::Link link(loop, options);
  return runtime::run_blocking(loop, prepare_and_stop(link, config, keys));
}

http::GuardPolicy guard_policy(const config::Config& config) {
  http::GuardPolicy policy;
  policy.allow_http = config.allow_http;
  policy.allow_networks = config.allow_networks;
  policy.allow_ports = config.allow_ports;
  return policy;
}

// Taken before the database is prepared, so that a port in use is known at once; nothing is let in yet.
http::Listener::Options listener_options(const config::Config& config) {
  http::Listener::Options options;
  options.address = config.listen.text();
  options.connections_max = static_cast<size_t>(config.connections_max);
  options.connections_per_address_max = static_cast<size_t>(config.connections_per_address_max);
  options.is_open_at_once = false;
  return options;
}

registry::SecretResolver::Options secret_options(const config::Config& config) {
  registry::SecretResolver::Options options;
  options.policy.directories = config.secret_directories;
  options.policy.environment_prefix = config.secret_environment_prefix;
  options.policy.programs = config.secret_programs;
  options.kept = config.secret_lifetime;
  return options;
}

std::vector<inbox::ConfiguredSource> read_sources(const config::Config& config) {
  const registry::ReferencePolicy policy = secret_options(config).policy;
  return api::read_configured_sources(config, &policy);
}

// On stdout and not in the log, because it is shown only once and logs are kept.
void print_admin_key(const std::string& key) {
  std::printf(
      "postrider: this is the admin key. It is shown only now and kept as a hash:\n  %s\n"
      "Set POSTRIDER_ADMIN_KEY to use a key of your own.\n",
      key.c_str());
  std::fflush(stdout);
}

// Serves until a signal, then drains. A second signal stops the process at once: what was in flight is sent
// again after the next start.
class Serving {
 public:
  // Every node listens: for health, metrics and management; events are taken by those with the role api.
  Serving(const config::Config& config, http::Listener& listener, const Database& database,
          const crypto::MasterKeys& keys, std::vector<inbox::ConfiguredSource> sources)
      : config_(config),
        listener_(listener),
        guard_(guard_policy(config)),
        secrets_(secret_options(config)),
        tls_({.extra_ca_file = config.extra_ca_file}),
        engine_(
            {config, database.url(), database.direct_url(), keys, guard_, tls_, ids_, metrics_, &secrets_}),
        background_({config, database.direct_url(), metrics_, engine_, rejections_, ids_, rates_,
                     [this](const std::string& source) { wake_consumers(source); }, keys, guard_, tls_,
                     std::move(sources), recipients_}),
        relay_({config, database.direct_url(), keys, metrics_, ids_, engine_, background_.fanout()}) {
    for (int i = 0; i < std::max(1, config.api_threads); ++i)
      api_.push_back(std::make_unique<ApiThread>(
          ApiTools{config, database.url(), keys, guard_, tls_, metrics_, ids_, engine_, background_.fanout(),
                   rates_, key_rates_, rejections_, background_.inbox_maintenance(), listener_, secrets_,
                   worker_, database, recipients_, sign_in_guard_}));
    engine_.on_change([this](const registry::Change& change) {
      for (const auto& each : api_) each->apply(change);
      if (config_.roles.relay) relay_.apply(change);
    });
  }

  void start() {
    listener_.open();
    engine_.start(kDatabaseWait);
    background_.start();
    if (config_.roles.relay) relay_.start();
    for (const auto& each : api_) each->start();
  }

  void stop() {
    const auto deadline = base::BootClock::now() + config_.drain_timeout;
    // In parallel to the others, so that none of them uses up the time of the attempts in flight.
    auto drained = std::async(std::launch::async, [this] { engine_.drain(config_.drain_timeout); });
    for (const auto& each : api_) each->stop(deadline);
    if (config_.roles.relay) relay_.stop();
    background_.stop();
    drained.get();
    engine_.stop();
  }

  // Every thread that serves requests or sends deliveries runs the job.
  void probe(const std::function<void()>& job) {
    for (const auto& each : api_) each->post(job);
    engine_.post_to_shards(job);
  }

  std::string address() const { return listener_.address(); }
  std::string id() const { return engine_.id().public_id(); }

 private:
  void wake_consumers(const std::string& source) {
    for (const auto& each : api_) each->wake_consumers(source);
  }

  const config::Config& config_;
  http::Listener& listener_;
  telemetry::Metrics metrics_;
  inbox::Rejections rejections_{metrics_};
  model::IdSource ids_;
  http::AddressGuard guard_;
  registry::SecretResolver secrets_;
  http::TlsContext tls_;
  delivery::Engine engine_;
  base::RateLimiter rates_, key_rates_;
  web::SignInGuard sign_in_guard_;
  upkeep::RecipientNotes recipients_;
  BackgroundThread background_;
  RelayThread relay_;
  runtime::Worker worker_;
  std::vector<std::unique_ptr<ApiThread>> api_;
};

void log_stopping(const StopSignal& signal, const config::Config& config) {
  telemetry::log_info("stopping")
      .field("signal", signal.number == SIGINT ? "SIGINT" : "SIGTERM")
      .field("sender_pid", signal.sender)
      .field("drain_seconds", config.drain_timeout.count());
}

struct StoppedWhileStarting {};

// No value if a signal arrived before the private Postgres was ready.
std::optional<Database> start_database(const config::Config& config, StopSignals& signals) {
  const auto check_stop = [&] {
    const auto signal = signals.wait_for(0ms);
    if (!signal) return;
    log_stopping(*signal, config);
    throw StoppedWhileStarting();
  };
  try {
    return Database(config, check_stop);
  } catch (const StoppedWhileStarting&) {
    telemetry::log_info("stopped");
    return std::nullopt;
  }
}

// Runs a step of the start in another thread while this one watches for a signal, which ends the process: the
// database rolls back open transactions, and nothing is served yet.
template <class Step, class Quit>
auto run_or_quit(Step step, StopSignals& signals, const Quit& quit) {
  auto result = std::async(std::launch::async, std::move(step));
  while (result.wait_for(20ms) != std::future_status::ready)
    if (const auto signal = signals.wait_for(0ms)) quit(*signal);
  return result.get();
}

// A signal during the start is returned if the start completes soon, for an ordinary stop. Otherwise the
// start is blocked, and the process ends.
template <class Quit>
std::optional<StopSignal> start_or_quit(Serving& serving, StopSignals& signals, const Quit& quit) {
  auto started = std::async(std::launch::async, [&serving] { serving.start(); });
  std::optional<StopSignal> signal;
  while (!signal && started.wait_for(20ms) != std::future_status::ready) signal = signals.wait_for(0ms);
  if (signal && started.wait_for(kStartGrace) != std::future_status::ready) quit(*signal);
  started.get();
  return signal;
}

// Stops in another thread while this one watches for a second signal.
void stop_or_quit(Serving& serving, StopSignals& signals, Database& database, telemetry::Log& log) {
  auto stopped = std::async(std::launch::async, [&serving] { serving.stop(); });
  while (stopped.wait_for(0s) != std::future_status::ready) {
    if (!signals.wait_for(50ms)) continue;
    database.stop();
    telemetry::log_warn("stopped_at_once").field("note", "what was in flight is sent again");
    log.flush();
    _exit(base::stopped_at_once);  // other threads are in the middle of things
  }
  stopped.get();
}

}  // namespace

int serve(const config::Loaded& loaded) {
  ::umask(S_IRWXG | S_IRWXO);  // files of this process may contain payloads or keys
  config::Config config = loaded.config;
  const NotifySettings notify = NotifySettings::take_from_environment();
  StopSignals signals;
  telemetry::Log log(log_options(config));
  auto sources = read_sources(config);
  http::Listener listener(listener_options(config));
  // A malformed key is reported before a cluster is created for it.
  auto configured_keys = find_master_keys(config, config.database_url.empty());
  std::optional<Database> started = start_database(config, signals);
  if (!started) return base::done;
  Database& database = *started;
  const auto quit = [&](const StopSignal& signal) {
    log_stopping(signal, config);
    database.stop();
    telemetry::log_info("stopped");
    log.flush();
    _exit(base::done);  // another thread is in the middle of its step
  };
  const crypto::MasterKeys keys =
      configured_keys ? std::move(*configured_keys) : load_master_keys(config, database.is_private());
  const auto migrating = [&] { return migrate_database(config, database.direct_url()); };
  const pg::MigrateReport schema = run_or_quit(migrating, signals, quit);
  const auto preparing = [&] { return prepare_database(database.direct_url(), config, keys); };
  const Prepared prepared = run_or_quit(preparing, signals, quit);
  config.buckets = prepared.buckets;  // fixed when the schema was created; the setting has no effect now
  if (prepared.new_admin_key) print_admin_key(*prepared.new_admin_key);

  Serving serving(config, listener, database, keys, std::move(sources));
  ServiceManager service(notify);
  std::optional<StopSignal> signal = start_or_quit(serving, signals, quit);
  telemetry::log_info("started")
      .field("version", base::kVersion)
      .field("node_id", serving.id())
      .field("listen", serving.address())
      .field("schema", schema.version)
      .field("private_postgres", database.is_private());
  service.ready("Listening on " + serving.address(),
                [&serving](const std::function<void()>& job) { serving.probe(job); });
  while (!signal && !(signal = signals.wait_for(500ms))) database.keep_alive();

  service.stopping();
  log_stopping(*signal, config);
  stop_or_quit(serving, signals, database, log);
  database.stop();
  telemetry::log_info("stopped");
  return base::done;
}

}  // namespace postrider::server
