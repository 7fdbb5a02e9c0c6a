#include "postrider/delivery/engine.hpp"

#include <optional>
#include <utility>

#include "postrider/base/check.hpp"
#include "postrider/base/host_name.hpp"
#include "postrider/cluster/membership.hpp"
#include "postrider/cluster/peer_notifier.hpp"
#include "postrider/cluster/publish_log_follower.hpp"
#include "postrider/cluster/registry_follower.hpp"
#include "postrider/crypto/random.hpp"
#include "postrider/delivery/brake_reader.hpp"
#include "postrider/delivery/engine_options.hpp"
#include "postrider/delivery/report/in_flight_writer.hpp"
#include "postrider/delivery/report/lane_wait_writer.hpp"
#include "postrider/delivery/report/rollup_writer.hpp"
#include "postrider/delivery/report/traffic_metrics.hpp"
#include "postrider/delivery/shard.hpp"
#include "postrider/pg/listener.hpp"
#include "postrider/runtime/loop_thread.hpp"

namespace postrider::delivery {

namespace {

using namespace std::chrono_literals;

constexpr auto kGaugeInterval = 5s;
constexpr auto kTakeEffectWait = 2s;

model::NodeId new_node_id() {
  model::NodeId id;
  const std::string bytes = crypto::random_bytes(id.uuid.bytes.size());
  std::copy(bytes.begin(), bytes.end(), id.uuid.bytes.begin());
  id.uuid.bytes[6] = static_cast<uint8_t>((id.uuid.bytes[6] & 0x0F) | 0x40);
  id.uuid.bytes[8] = static_cast<uint8_t>((id.uuid.bytes[8] & 0x3F) | 0x80);
  return id;
}

}  // namespace

// One shard with its thread.
struct ShardThread {
  ShardThread(const EngineTools& tools, const Metrics& metrics, const cluster::LeaseClock& lease,
              const ShardOptions& options, size_t shards)
      : link(loop, pooled(link_options(tools.database_url, "postrider delivery"), tools.config)),
        client(loop, tools.guard, tools.tls, client_options(tools.config, shards)),
        shard({loop, link, client, lease, tools.ids, tools.keys, metrics, tools.secrets}, options) {}

  runtime::LoopThread on;
  runtime::Loop& loop = on.loop;
  pg::Link link;
  http::Client client;
  Shard shard;
};

struct Engine::State {
  explicit State(EngineTools engine_tools);

  Shard& shard_of(int bucket) { return thread_of(bucket).shard; }
  ShardThread& thread_of(int bucket) { return *shards[static_cast<size_t>(bucket) % shards.size()]; }
  cluster::MembershipEvents membership_events();
  cluster::PublishLogEvents publish_log_events();
  cluster::RegistryEvents registry_events();
  void everywhere(const std::function<void(Shard&)>& job);
  void apply(const registry::Change& change);
  template <class T>
  runtime::Task<std::vector<T>> collect(std::function<std::vector<T>(Shard&)> ask);
  runtime::Task<std::vector<RollupRow>> collect_rollups();
  runtime::Task<std::vector<InFlight>> collect_in_flight();
  runtime::Task<std::vector<LaneWait>> collect_lane_waits();
  runtime::Task<void> begin(base::SteadyTime deadline);
  runtime::Task<bool> drain_bucket(int bucket, std::chrono::milliseconds patience);
  runtime::Task<void> stop_control();
  void read_gauges();
  void show_gauges();

  EngineTools tools;
  Metrics metrics{tools.metrics, tools.config.metrics_tenants};
  TrafficMetrics traffic{tools.metrics, tools.config.metrics_tenants};
  model::NodeId id = new_node_id();
  cluster::LeaseClock lease;
  std::function<void(const registry::Change&)> on_change;
  std::vector<std::unique_ptr<ShardThread>> shards;
  std::vector<Shard::Gauges> gauges;  // of each shard, as last read; used on the control loop

  runtime::LoopThread on_control;
  runtime::Loop& control = on_control.loop;
  pg::Link lease_link, log_link;
  pg::Listener listener;
  cluster::Membership membership;
  cluster::PublishLogFollower publish_log;
  cluster::RegistryFollower registry_log;
  BrakeReader brakes;
  cluster::PeerNotifier notifier;
  RollupWriter rollups;
  InFlightWriter in_flight;
  LaneWaitWriter lane_waits;
  runtime::Timer gauge_timer;
  bool is_left = false;
};

Engine::State::State(EngineTools engine_tools)
    : tools(std::move(engine_tools)),
      lease_link(control, eager(link_options(tools.direct_database_url, "postrider leases"),
                                std::chrono::seconds(tools.config.lease_seconds))),
      log_link(control, relaxed(link_options(tools.direct_database_url, "postrider control"))),
      listener(control, {.link = link_options(tools.direct_database_url, "postrider listen"),
                         .channels = {"postrider_publish"}}),
      membership(control, lease_link, lease, tools.ids, tools.metrics,
                 {.node_id = id,
                  .name = base::host_name(),
                  .delivers = tools.config.roles.delivery,
                  .lease = std::chrono::seconds(tools.config.lease_seconds)},
                 membership_events()),
      publish_log(control, log_link, id, publish_log_events()),
      registry_log(control, log_link, registry_events()),
      brakes(control, log_link,
             [this](const Brakes& read) { everywhere([read](Shard& shard) { shard.set_brakes(read); }); }),
      notifier(control, log_link),
      rollups(control, log_link, id, [this] { return collect_rollups(); }),
      in_flight(control, log_link, id, [this] { return collect_in_flight(); }),
      lane_waits(control, log_link, [this] { return collect_lane_waits(); }),
      gauge_timer(control) {
  const int count = tools.config.roles.delivery ? std::max(1, tools.config.shards) : 0;
  for (int i = 0; i < count; ++i)
    shards.push_back(std::make_unique<ShardThread>(
        tools, metrics, lease, shard_options(tools.config, id, count), static_cast<size_t>(count)));
  gauges.resize(shards.size());
  lease_link.on_up([this](const pg::LinkUp& up) {
    if (up.is_other_timeline) membership.server_changed();
  });
  listener.on_notification([this](std::string_view, std::string_view) { publish_log.wake(); });
  listener.on_listening([this] { publish_log.wake(); });
}

cluster::MembershipEvents Engine::State::membership_events() {
  cluster::MembershipEvents events;
  events.taken = [this](int bucket, int64_t epoch) {
    ShardThread& home = thread_of(bucket);
    home.loop.post([&home, bucket, epoch] { home.shard.take_bucket(bucket, epoch); });
  };
  events.lost = [this](int bucket) {
    ShardThread& home = thread_of(bucket);
    home.loop.post([&home, bucket] { home.shard.drop_bucket(bucket); });
  };
  events.lost_everything = [this](int64_t term) {
    everywhere([term](Shard& shard) { shard.drop_everything(term); });
  };
  events.drain = [this](int bucket, std::chrono::milliseconds patience) {
    return drain_bucket(bucket, patience);
  };
  events.renewed = [this] { everywhere([](Shard& shard) { shard.lease_renewed(); }); };
  return events;
}

cluster::PublishLogEvents Engine::State::publish_log_events() {
  cluster::PublishLogEvents events;
  events.found = [this](const cluster::PublishLogEvents::Found& found) {
    everywhere([found](Shard& shard) { shard.discover({found.buckets, found.first, found.last}); });
  };
  events.missed = [this] { everywhere([](Shard& shard) { shard.rescan(); }); };
  return events;
}

cluster::RegistryEvents Engine::State::registry_events() {
  cluster::RegistryEvents events;
  events.changed = [this](const registry::Change& change) {
    apply(change);
    if (on_change) on_change(change);
  };
  events.missed = [this] {
    everywhere([](Shard& shard) {
      shard.refresh_all();
      shard.rescan();  // a delivery may have been expedited
    });
    brakes.read_soon();
  };
  return events;
}

void Engine::State::apply(const registry::Change& change) {
  using registry::ChangeKind;
  if (change.kind == ChangeKind::brakes) {
    brakes.read_soon();
  } else if (change.endpoint_id && change.delivery_id) {
    const bool is_cancel = change.kind == ChangeKind::cancel;
    everywhere([is_cancel, endpoint = *change.endpoint_id, delivery = *change.delivery_id](Shard& shard) {
      if (is_cancel)
        shard.cancel_delivery(endpoint, delivery);
      else
        shard.expedite_delivery(endpoint, delivery);
    });
  } else if (change.endpoint_id) {
    everywhere([endpoint = *change.endpoint_id](Shard& shard) { shard.refresh_endpoint(endpoint); });
  } else if (change.tenant_id) {
    everywhere([tenant = *change.tenant_id](Shard& shard) { shard.refresh_tenant(tenant); });
  }
}

// Calls each shard on its own loop, one at a time.
template <class T>
runtime::Task<std::vector<T>> Engine::State::collect(std::function<std::vector<T>(Shard&)> ask) {
  std::vector<T> all;
  for (const auto& each : shards) {
    runtime::OneShot<bool> done;
    each->loop.post([this, &ask, &shard = each->shard, &all, &done] {
      std::vector<T> told = ask(shard);
      control.post([&all, &done, told = std::move(told)]() mutable {
        all.insert(all.end(), std::make_move_iterator(told.begin()), std::make_move_iterator(told.end()));
        done.set(true);
      });
    });
    co_await done;
  }
  co_return all;
}

runtime::Task<std::vector<RollupRow>> Engine::State::collect_rollups() {
  auto collecting = collect<RollupRow>([](Shard& shard) { return shard.take_rollups(); });
  std::vector<RollupRow> rows = co_await collecting;
  for (const RollupRow& row : rows) traffic.add(row);
  co_return rows;
}

runtime::Task<std::vector<InFlight>> Engine::State::collect_in_flight() {
  const base::SteadyTime before = base::BootClock::now() - InFlightWriter::kAge;
  return collect<InFlight>(
      [before](Shard& shard) { return shard.in_flight_since(before, InFlightWriter::kMax); });
}

runtime::Task<std::vector<LaneWait>> Engine::State::collect_lane_waits() {
  return collect<LaneWait>([](Shard& shard) { return shard.lane_waits(); });
}

void Engine::State::everywhere(const std::function<void(Shard&)>& job) {
  for (const auto& each : shards) each->loop.post([&shard = each->shard, job] { job(shard); });
}

// Each shard is read on its own loop. The sums follow each reading, so a slow shard only delays its own part.
void Engine::State::read_gauges() {
  for (size_t i = 0; i < shards.size(); ++i)
    shards[i]->loop.post([this, i] {
      control.post([this, i, read = shards[i]->shard.gauges()] {
        gauges[i] = read;
        show_gauges();
      });
    });
  gauge_timer.call_after(kGaugeInterval, [this] { read_gauges(); });
}

void Engine::State::show_gauges() {
  Shard::Gauges sum;
  for (const Shard::Gauges& each : gauges) {
    sum.processing += each.processing;
    sum.waiting += each.waiting;
  }
  const QueueDepth& waiting = sum.waiting;
  metrics.queue_depth.at("pending").set(static_cast<double>(waiting.pending));
  metrics.queue_depth.at("processing").set(sum.processing);
  metrics.queue_depth.at("retrying").set(static_cast<double>(waiting.retrying));
  metrics.queue_depth.at("breaker").set(static_cast<double>(waiting.breaker));
  metrics.queue_depth.at("paused").set(static_cast<double>(waiting.paused));
  metrics.queue_depth.at("held").set(static_cast<double>(waiting.held));
  metrics.lanes_held.set(static_cast<double>(waiting.lanes_held));
  metrics.oldest_pending_seconds.set(waiting.oldest_pending_seconds);
}

namespace {

struct Draining {
  Shard& shard;
  int bucket;
  std::chrono::milliseconds patience;
};

runtime::Task<void> drain_and_tell(Draining what, runtime::Loop& home, runtime::OneShot<bool>& done) {
  const bool is_drained = co_await what.shard.drain_bucket(what.bucket, what.patience);
  home.post([&done, is_drained] { done.set(is_drained); });
}

}  // namespace

runtime::Task<bool> Engine::State::drain_bucket(int bucket, std::chrono::milliseconds patience) {
  runtime::OneShot<bool> done;
  ShardThread& home = thread_of(bucket);
  home.loop.post([this, &home, &done, bucket, patience] {
    home.on.spawn(drain_and_tell({home.shard, bucket, patience}, control, done));
  });
  const bool is_drained = co_await done;
  co_return is_drained;
}

// The cursors of the log and the registry are taken before the first bucket, so that no change is missed.
runtime::Task<void> Engine::State::begin(base::SteadyTime deadline) {
  lease_link.start();
  log_link.start();
  listener.start();
  co_await lease_link.wait_up(deadline);
  co_await log_link.wait_up(deadline);
  co_await publish_log.begin();
  co_await registry_log.begin();
  co_await membership.join();
  co_await brakes.begin();  // before the first bucket is taken
  registry_log.start();
  rollups.start();
  if (!shards.empty()) publish_log.start();
  membership.start();
  if (shards.empty()) co_return;
  in_flight.start();
  lane_waits.start();
  read_gauges();
}

runtime::Task<void> Engine::State::stop_control() {
  if (!is_left) co_await membership.stop();
  is_left = true;
  gauge_timer.cancel();
  co_await publish_log.stop();
  co_await registry_log.stop();
  co_await brakes.stop();
  co_await rollups.stop();
  co_await in_flight.stop();
  co_await lane_waits.stop();
  co_await notifier.stop();
  co_await listener.stop();
  co_await lease_link.stop();
  co_await log_link.stop();
}

Engine::Engine(EngineTools tools) : state_(std::make_unique<State>(std::move(tools))) {}

Engine::~Engine() {
  CHECK(!state_->on_control.is_running());
}

model::NodeId Engine::id() const {
  return state_->id;
}

void Engine::on_change(std::function<void(const registry::Change&)> callback) {
  state_->on_change = std::move(callback);
}

void Engine::start(std::chrono::seconds database_wait) {
  State& state = *state_;
  for (const auto& each : state.shards) {
    each->loop.post([&link = each->link] { link.start(); });
    each->on.start();
  }
  state.on_control.start();
  const auto deadline = base::BootClock::now() + database_wait;
  try {
    state.on_control.run([&state, deadline] { return state.begin(deadline); });
  } catch (...) {
    state.is_left = true;
    stop();
    throw;
  }
}

void Engine::offer(std::vector<model::CommittedDelivery> deliveries) {
  State& state = *state_;
  if (state.shards.empty()) return;
  std::vector<std::vector<model::CommittedDelivery>> by_shard(state.shards.size());
  for (auto& delivery : deliveries) {
    auto& home = by_shard[static_cast<size_t>(delivery.bucket) % by_shard.size()];
    home.push_back(std::move(delivery));
  }
  for (size_t i = 0; i < by_shard.size(); ++i)
    if (!by_shard[i].empty())
      state.shards[i]->loop.post([&shard = state.shards[i]->shard, rows = std::move(by_shard[i])]() mutable {
        shard.offer(std::move(rows));
      });
}

void Engine::committed() {
  State& state = *state_;
  state.control.post([&state] {
    if (state.membership.has_peers()) state.notifier.notify_soon();
  });
}

namespace {

runtime::Task<void> take_effect_and_tell(Shard& shard, registry::ChangedEndpoints changed,
                                         runtime::Loop& home, runtime::OneShot<bool>& done) {
  const auto deadline = base::BootClock::now() + kTakeEffectWait;
  co_await shard.take_effect(std::move(changed), deadline);
  home.post([&done] { done.set(true); });
}

}  // namespace

runtime::Task<void> Engine::take_effect(registry::ChangedEndpoints changed, runtime::Loop& home) {
  for (const auto& each : state_->shards) {
    runtime::OneShot<bool> done;
    each->loop.post([&each, &changed, &home, &done] {
      each->on.spawn(take_effect_and_tell(each->shard, changed, home, done));
    });
    co_await done;
  }
}

void Engine::post_to_shards(const std::function<void()>& job) {
  for (const auto& each : state_->shards) each->loop.post(job);
}

void Engine::drain(std::chrono::milliseconds timeout) {
  State& state = *state_;
  const auto deadline = base::BootClock::now() + timeout;
  state.everywhere([](Shard& shard) { shard.stop_sending(); });
  for (const auto& each : state.shards)
    each->on.run([&shard = each->shard, deadline] { return shard.drain(deadline); });
}

void Engine::stop() {
  State& state = *state_;
  if (!state.on_control.is_running()) return;
  // First, because other nodes send unsettled deliveries again once this node has left.
  for (const auto& each : state.shards) each->on.run([&shard = each->shard] { return shard.cut_off(); });
  state.on_control.run([&state] { return state.stop_control(); });
  for (const auto& each : state.shards) {
    each->on.run([&shard = each->shard] { return shard.stop(); });
    each->on.stop();
  }
  state.on_control.stop();
}

}  // namespace postrider::delivery
