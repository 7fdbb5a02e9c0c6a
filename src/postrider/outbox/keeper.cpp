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
        mover(name, link, tools.sink, series, limits),
        relay(tools.loop, link, mover, series, options_for(options, name, url)) {
    link.on_down([name](const pg::Error& error) {
      telemetry::log_warn("outbox_unreachable").field("outbox", name).field("error", error.what());
    });
    link.start();
    relay.start();
  }

  Task<void> stop() {
    auto stopped = relay.stop();
    co_await stopped;
    auto closed = link.stop();
    co_await closed;
  }

  std::string sealed;  // as in the registry: another one is another place
  telemetry::OutboxSeries series;
  pg::Link link;
  OtherDatabaseMover mover;
  Relay relay;
};

RelayKeeper::RelayKeeper(KeeperTools tools, RelayOptions options, MoveLimits limits)
    : tools_(tools), options_(std::move(options)), limits_(std::move(limits)), wakeup_(tools.loop) {}

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

Task<void> RelayKeeper::run_once() {
  auto listing = list_sources(tools_.registry);
  const auto sources = co_await listing;
  std::map<std::string, const Source*> wanted;
  for (const Source& source : sources) wanted.emplace(source.id, &source);
  for (auto at = units_.begin(); at != units_.end();) {
    const auto found = wanted.find(at->first);
    if (found != wanted.end() && found->second->sealed == at->second->sealed) {
      ++at;
      continue;
    }
    auto stopping = at->second->stop();
    co_await stopping;
    at = units_.erase(at);
  }
  for (const auto& [name, source] : wanted) {
    if (units_.contains(name) || is_stopping_) continue;
    const auto url = open_url(tools_.keys, *source);
    if (!url) {
      telemetry::log_error("outbox_unreadable").field("outbox", name).field("error", describe(url.error()));
      continue;
    }
    units_.emplace(name, std::make_unique<Unit>(tools_, name, source->sealed, *url, options_, limits_));
  }
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
