#include "postrider/outbox/keeper.hpp"

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

MoveLimits fenced(MoveLimits limits, const pg::Lease& lease) {
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

struct RelayKeeper::Unit {
  Unit(const KeeperTools& tools, const std::string& name, std::string sealed_url, const std::string& url,
       const RelayOptions& options, const MoveLimits& limits)
      : sealed(std::move(sealed_url)),
        series(tools.metrics.outbox(name)),
        link(tools.loop, relay_link(url)),
        lease(link, relay_lease(options_for(options, name, url))),
        stuck(name, tools.registry),
        mover(name, link, tools.sink, series, fenced(limits, lease)),
        relay(tools.loop, link, lease, mover, series, options_for(options, name, url)),
        taker(link, tools.sink, series, fenced(limits, lease)),
        capture({tools.loop, link, tools.registry, lease, taker, tools.metrics.capture(name)},
                capture_options(name, url, limits), [this] { return relay.is_active(); }) {
    mover.report_to(stuck);
    link.on_down([name](const pg::Error& error) {
      telemetry::log_warn("outbox_unreachable").field("outbox", name).field("error", error.what());
    });
    link.start();
    relay.start();
    capture.start();
  }

  Task<void> stop() {
    auto captured = capture.stop();
    co_await captured;
    auto stopped = relay.stop();
    co_await stopped;
    auto closed = link.stop();
    co_await closed;
  }

  std::string sealed;  // as in the registry: another one is another place
  telemetry::OutboxSeries series;
  pg::Link link;
  pg::Lease lease;
  StuckReporter stuck;
  OtherDatabaseMover mover;
  Relay relay;
  OtherDatabaseTaker taker;
  Capture capture;
};

RelayKeeper::RelayKeeper(KeeperTools tools, RelayOptions options, MoveLimits limits)
    : tools_(std::move(tools)),
      options_(std::move(options)),
      limits_(std::move(limits)),
      wakeup_(tools_.loop) {}

RelayKeeper::~RelayKeeper() = default;

void RelayKeeper::start() {
  tasks_.spawn(run());
}

Task<void> RelayKeeper::run() {
  while (!is_stopping_) {
    try {
      auto pass = run_once();
      co_await pass;
    } catch (const pg::Error& error) {
      if (error.kind() != pg::Kind::unavailable)
        telemetry::log_warn("outboxes_not_read").field("error", error.what());
    }
    if (!is_stopping_) co_await wakeup_.wait_for(kInterval);
  }
}

// A URL that cannot be opened is empty.
Task<std::map<std::string, RelayKeeper::Wanted>> RelayKeeper::wanted() {
  std::map<std::string, Wanted> all;
  for (const ConfiguredOutbox& outbox : tools_.configured)
    all.emplace(outbox.name, Wanted{"", outbox.database_url, outbox.poll, outbox.retain});
  auto listing = list_sources(tools_.registry);
  const auto sources = co_await listing;
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

void RelayKeeper::start_unit(const std::string& name, const Wanted& wanted) {
  RelayOptions options = options_;
  MoveLimits limits = limits_;
  options.poll = wanted.poll.value_or(options.poll);
  limits.retain = wanted.retain.value_or(limits.retain);
  units_.emplace(name, std::make_unique<Unit>(tools_, name, wanted.sealed, wanted.url, options, limits));
}

Task<void> RelayKeeper::run_once() {
  auto asking = wanted();
  const auto all = co_await asking;
  for (auto at = units_.begin(); at != units_.end();) {
    const auto found = all.find(at->first);
    if (found != all.end() && found->second.sealed == at->second->sealed) {
      ++at;
      continue;
    }
    auto stopping = at->second->stop();
    co_await stopping;
    at = units_.erase(at);
  }
  for (const auto& [name, each] : all)
    if (!units_.contains(name) && !is_stopping_ && !each.url.empty()) start_unit(name, each);
}

Task<void> RelayKeeper::stop() {
  is_stopping_ = true;
  wakeup_.notify();
  co_await tasks_.join();
  for (auto& [name, unit] : units_) {
    auto stopping = unit->stop();
    co_await stopping;
  }
  units_.clear();
}

}  // namespace postrider::outbox
