#include "postrider/outbox/supervisor.hpp"

#include "postrider/telemetry/log.hpp"

namespace postrider::outbox {

namespace {

using runtime::Task;

constexpr std::chrono::seconds kInterval{1};

RelayOptions options_for(RelayOptions options, const std::string& name, const std::string& url) {
  options.name = name;
  options.listen = listen_link(url);
  return options;
}

DrainLimits fenced(DrainLimits limits, const pg::SessionLease& lease) {
  limits.lease = &lease;
  return limits;
}

}  // namespace

pg::LinkOptions relay_link(const std::string& url) {
  pg::LinkOptions options;
  options.connect = pg::ConnectOptions::engine(url);
  options.connect.application_name = "postrider relay";
  // A batch that takes so long is run again, well within the lease.
  options.connect.statement_timeout = pg::Milliseconds(5'000);
  options.connect.response_timeout = pg::Milliseconds(8'000);
  return options;
}

pg::LinkOptions listen_link(const std::string& url) {
  pg::LinkOptions options;
  options.connect.url = url;
  options.connect.application_name = "postrider relay listen";
  return options;
}

struct RelaySupervisor::Unit {
  Unit(const SupervisorTools& tools, const std::string& name, std::string sealed_url, const std::string& url,
       const RelayOptions& options, const DrainLimits& limits)
      : sealed(std::move(sealed_url)),
        series(tools.metrics, name),
        link(tools.loop, relay_link(url)),
        lease(link, relay_lease(options_for(options, name, url))),
        stuck(name, tools.registry),
        drainer(name, link, tools.sink, series, fenced(limits, lease)),
        relay(tools.loop, link, lease, drainer, series, options_for(options, name, url)),
        capture_publisher(link, tools.sink, series, fenced(limits, lease)),
        capture(
            {tools.loop, link, tools.registry, lease, capture_publisher, CaptureMetrics(tools.metrics, name)},
            capture_options(name, url, limits), [this] { return relay.is_active(); }) {
    drainer.report_to(stuck);
    link.on_down([name](const pg::Error& error) {
      telemetry::log_warn("outbox_unreachable").field("outbox", name).field("error", error.what());
    });
    link.start();
    relay.start();
    capture.start();
  }

  Task<void> stop() {
    co_await capture.stop();
    co_await relay.stop();
    co_await link.stop();
  }

  std::string sealed;  // as in the registry: another one is another place
  OutboxMetrics series;
  pg::Link link;
  pg::SessionLease lease;
  StuckReporter stuck;
  OtherDatabaseDrainer drainer;
  Relay relay;
  OtherDatabaseCapturePublisher capture_publisher;
  Capture capture;
};

RelaySupervisor::RelaySupervisor(SupervisorTools tools, RelayOptions options, DrainLimits limits)
    : Service(tools.loop),
      tools_(std::move(tools)),
      options_(runtime::validated(std::move(options))),
      limits_(std::move(limits)) {}

RelaySupervisor::~RelaySupervisor() = default;

Task<runtime::SteadyTime> RelaySupervisor::pass(runtime::SteadyTime) {
  try {
    co_await apply();
  } catch (const pg::Error& error) {
    if (error.kind() != pg::Kind::unavailable)
      telemetry::log_warn("outboxes_not_read").field("error", error.what());
  }
  co_return base::BootClock::now() + kInterval;
}

// A URL that cannot be opened is empty.
Task<std::map<std::string, RelaySupervisor::Wanted>> RelaySupervisor::wanted() {
  std::map<std::string, Wanted> all;
  for (const ConfiguredOutbox& outbox : tools_.configured)
    all.emplace(outbox.name, Wanted{"", outbox.database_url, outbox.poll, outbox.retain});
  const auto sources = co_await list_sources(tools_.registry);
  for (const Source& source : sources) {
    if (all.contains(source.id)) continue;
    const auto url = open_url(tools_.keys, source);
    if (!url && !units_.contains(source.id))
      telemetry::log_error("outbox_unreadable")
          .field("outbox", source.id)
          .field("error", describe(url.error()));
    all.emplace(source.id, Wanted{source.sealed, url ? *url : "", {}, {}});
  }
  co_return all;
}

void RelaySupervisor::start_unit(const std::string& name, const Wanted& wanted) {
  RelayOptions options = options_;
  DrainLimits limits = limits_;
  options.poll = wanted.poll.value_or(options.poll);
  limits.retain = wanted.retain.value_or(limits.retain);
  units_.emplace(name, std::make_unique<Unit>(tools_, name, wanted.sealed, wanted.url, options, limits));
}

Task<void> RelaySupervisor::apply() {
  const auto all = co_await wanted();
  for (auto at = units_.begin(); at != units_.end();) {
    const auto found = all.find(at->first);
    if (found != all.end() && found->second.sealed == at->second->sealed) {
      ++at;
      continue;
    }
    co_await at->second->stop();
    at = units_.erase(at);
  }
  for (const auto& [name, each] : all)
    if (!units_.contains(name) && !is_stopping() && !each.url.empty()) start_unit(name, each);
}

Task<void> RelaySupervisor::finish() {
  for (auto& [name, unit] : units_) {
    co_await unit->stop();
  }
  units_.clear();
}

}  // namespace postrider::outbox
