#include "postrider/delivery/node.hpp"

#include <optional>
#include <utility>

#include "postrider/base/check.hpp"
#include "postrider/base/host_name.hpp"
#include "postrider/crypto/random.hpp"
#include "postrider/delivery/brake_reader.hpp"
#include "postrider/delivery/follow.hpp"
#include "postrider/delivery/in_flight_writer.hpp"
#include "postrider/delivery/node_options.hpp"
#include "postrider/delivery/notifier.hpp"
#include "postrider/delivery/ownership.hpp"
#include "postrider/delivery/registry_watcher.hpp"
#include "postrider/delivery/rollup_writer.hpp"
#include "postrider/delivery/shard.hpp"
#include "postrider/pg/listener.hpp"
#include "postrider/runtime/run_on.hpp"

namespace postrider::delivery {

namespace {

using namespace std::chrono_literals;

constexpr auto kGaugeInterval = 5s;

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
  ShardThread(const NodeTools& tools, const LeaseClock& lease, const ShardOptions& options, size_t shards)
      : link(loop, pooled(link_options(tools.database_url, "postrider delivery"), tools.config)),
        client(loop, tools.guard, tools.tls, client_options(tools.config, shards)),
        shard({loop, link, client, lease, tools.ids, tools.keys, tools.metrics, tools.secrets}, options) {}

  runtime::Loop loop;
  pg::Link link;
  http::Client client;
  runtime::TaskGroup tasks;
  Shard shard;
  std::thread thread;
};

struct Node::State {
  explicit State(NodeTools node_tools);

  Shard& shard_of(int bucket) { return thread_of(bucket).shard; }
  ShardThread& thread_of(int bucket) { return *shards[static_cast<size_t>(bucket) % shards.size()]; }
  KeeperEvents keeper_events();
  FollowerEvents follower_events();
  WatcherEvents watcher_events();
  void everywhere(const std::function<void(Shard&)>& job);
  void apply(const registry::Change& change);
  template <class T>
  runtime::Task<std::vector<T>> collect(std::function<std::vector<T>(Shard&)> ask);
  runtime::Task<std::vector<TallyRow>> collect_tallies();
  runtime::Task<std::vector<InFlight>> collect_in_flight();
  runtime::Task<void> begin(base::SteadyTime deadline);
  runtime::Task<bool> drain_bucket(int bucket, std::chrono::milliseconds patience);
  runtime::Task<void> stop_control();
  void read_gauges();
  void show_gauges();

  NodeTools tools;
  model::NodeId id = new_node_id();
  LeaseClock lease;
  std::function<void(const registry::Change&)> on_change;
  std::vector<std::unique_ptr<ShardThread>> shards;
  std::vector<Shard::Gauges> gauges;  // of each shard, as last read; used on the control loop

  runtime::Loop control;
  pg::Link lease_link, log_link;
  pg::Listener listener;
  BucketKeeper keeper;
  LogFollower follower;
  RegistryWatcher watcher;
  BrakeReader brakes;
  Notifier notifier;
  RollupWriter rollups;
  InFlightWriter in_flight;
  runtime::Timer gauge_timer;
  runtime::TaskGroup control_tasks;
  std::thread control_thread;
  bool is_left = false;
};

Node::State::State(NodeTools node_tools)
    : tools(std::move(node_tools)),
      lease_link(control, eager(link_options(tools.direct_database_url, "postrider leases"),
                                std::chrono::seconds(tools.config.lease_seconds))),
      log_link(control, relaxed(link_options(tools.direct_database_url, "postrider control"))),
      listener(control, {.link = link_options(tools.direct_database_url, "postrider listen"),
                         .channels = {"postrider_publish"}}),
      keeper(control, lease_link, lease, tools.ids, tools.metrics,
             {.node_id = id,
              .name = base::host_name(),
              .delivers = tools.config.roles.delivery,
              .lease = std::chrono::seconds(tools.config.lease_seconds)},
             keeper_events()),
      follower(control, log_link, id, follower_events()),
      watcher(control, log_link, watcher_events()),
      brakes(control, log_link,
             [this](const Brakes& read) { everywhere([read](Shard& shard) { shard.set_brakes(read); }); }),
      notifier(control, log_link),
      rollups(control, log_link, id, [this] { return collect_tallies(); }),
      in_flight(control, log_link, id, [this] { return collect_in_flight(); }),
      gauge_timer(control) {
  const int count = tools.config.roles.delivery ? std::max(1, tools.config.shards) : 0;
  for (int i = 0; i < count; ++i)
    shards.push_back(std::make_unique<ShardThread>(tools, lease, shard_options(tools.config, id, count),
                                                   static_cast<size_t>(count)));
  gauges.resize(shards.size());
  lease_link.on_up([this](const pg::LinkUp& up) {
    if (up.is_other_timeline) keeper.server_changed();
  });
  listener.on_notification([this](std::string_view, std::string_view) { follower.wake(); });
  listener.on_listening([this] { follower.wake(); });
}

KeeperEvents Node::State::keeper_events() {
  KeeperEvents events;
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

FollowerEvents Node::State::follower_events() {
  FollowerEvents events;
  events.found = [this](const FollowerEvents::Found& found) {
    everywhere([found](Shard& shard) { shard.discover({found.buckets, found.first, found.last}); });
  };
  events.missed = [this] { everywhere([](Shard& shard) { shard.rescan(); }); };
  return events;
}

WatcherEvents Node::State::watcher_events() {
  WatcherEvents events;
  events.changed = [this](const registry::Change& change) {
    apply(change);
    if (on_change) on_change(change);
  };
  events.missed = [this] {
    everywhere([](Shard& shard) {
      shard.refresh_all();
      shard.rescan();  // a delivery may have been hurried
    });
    brakes.read_soon();
  };
  return events;
}

void Node::State::apply(const registry::Change& change) {
  using registry::ChangeKind;
  if (change.kind == ChangeKind::brakes) {
    brakes.read_soon();
  } else if (change.endpoint_id && change.delivery_id) {
    const bool is_cancel = change.kind == ChangeKind::cancel;
    everywhere([is_cancel, endpoint = *change.endpoint_id, delivery = *change.delivery_id](Shard& shard) {
      if (is_cancel)
        shard.forget_delivery(endpoint, delivery);
      else
        shard.hurry_delivery(endpoint, delivery);
    });
  } else if (change.endpoint_id) {
    everywhere([endpoint = *change.endpoint_id](Shard& shard) { shard.refresh_endpoint(endpoint); });
  } else if (change.tenant_id) {
    everywhere([tenant = *change.tenant_id](Shard& shard) { shard.refresh_tenant(tenant); });
  }
}

// Each shard is asked on its own loop, one after the other.
template <class T>
runtime::Task<std::vector<T>> Node::State::collect(std::function<std::vector<T>(Shard&)> ask) {
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

runtime::Task<std::vector<TallyRow>> Node::State::collect_tallies() {
  return collect<TallyRow>([](Shard& shard) { return shard.take_tallies(); });
}

runtime::Task<std::vector<InFlight>> Node::State::collect_in_flight() {
  const base::SteadyTime before = base::BootClock::now() - InFlightWriter::kAge;
  return collect<InFlight>(
      [before](Shard& shard) { return shard.in_flight_since(before, InFlightWriter::kMax); });
}

void Node::State::everywhere(const std::function<void(Shard&)>& job) {
  for (const auto& each : shards) each->loop.post([&shard = each->shard, job] { job(shard); });
}

// Each shard is asked on its own loop; the sums are shown when the last answers are in, at the latest next
// time.
void Node::State::read_gauges() {
  for (size_t i = 0; i < shards.size(); ++i)
    shards[i]->loop.post([this, i] {
      control.post([this, i, read = shards[i]->shard.gauges()] {
        gauges[i] = read;
        show_gauges();
      });
    });
  gauge_timer.call_after(kGaugeInterval, [this] { read_gauges(); });
}

void Node::State::show_gauges() {
  Shard::Gauges sum;
  for (const Shard::Gauges& each : gauges) {
    sum.processing += each.processing;
    sum.retrying += each.retrying;
    sum.held += each.held;
    sum.oldest_pending_seconds = std::max(sum.oldest_pending_seconds, each.oldest_pending_seconds);
  }
  tools.metrics.queue_depth.at("processing").set(sum.processing);
  tools.metrics.queue_depth.at("retrying").set(static_cast<double>(sum.retrying));
  tools.metrics.lanes_held.set(static_cast<double>(sum.held));
  tools.metrics.oldest_pending_seconds.set(sum.oldest_pending_seconds);
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

runtime::Task<bool> Node::State::drain_bucket(int bucket, std::chrono::milliseconds patience) {
  runtime::OneShot<bool> done;
  ShardThread& home = thread_of(bucket);
  home.loop.post([this, &home, &done, bucket, patience] {
    home.tasks.spawn(drain_and_tell({home.shard, bucket, patience}, control, done));
  });
  const bool is_drained = co_await done;
  co_return is_drained;
}

// In this order, nothing is missed: the log's and the registry's cursors are taken before the first bucket
// is.
runtime::Task<void> Node::State::begin(base::SteadyTime deadline) {
  lease_link.start();
  log_link.start();
  listener.start();
  co_await lease_link.wait_up(deadline);
  co_await log_link.wait_up(deadline);
  co_await follower.begin();
  co_await watcher.begin();
  co_await keeper.join();
  co_await brakes.begin();  // before the first bucket is taken
  watcher.start();
  rollups.start();
  if (!shards.empty()) follower.start();
  keeper.start();
  if (shards.empty()) co_return;
  in_flight.start();
  read_gauges();
}

runtime::Task<void> Node::State::stop_control() {
  if (!is_left) co_await keeper.stop();
  is_left = true;
  gauge_timer.cancel();
  co_await follower.stop();
  co_await watcher.stop();
  co_await brakes.stop();
  co_await rollups.stop();
  co_await in_flight.stop();
  co_await notifier.stop();
  co_await listener.stop();
  co_await lease_link.stop();
  co_await log_link.stop();
}

Node::Node(NodeTools tools) : state_(std::make_unique<State>(std::move(tools))) {}

Node::~Node() {
  CHECK(!state_->control_thread.joinable());
}

model::NodeId Node::id() const {
  return state_->id;
}

void Node::on_change(std::function<void(const registry::Change&)> callback) {
  state_->on_change = std::move(callback);
}

void Node::start(std::chrono::seconds database_wait) {
  State& state = *state_;
  for (const auto& each : state.shards) {
    each->loop.post([&link = each->link] { link.start(); });
    each->thread = std::thread([&loop = each->loop] { loop.run(); });
  }
  state.control_thread = std::thread([&state] { state.control.run(); });
  const auto deadline = base::BootClock::now() + database_wait;
  try {
    runtime::run_on(state.control, state.control_tasks, [&state, deadline] { return state.begin(deadline); });
  } catch (...) {
    state.is_left = true;
    stop();
    throw;
  }
}

void Node::offer(std::vector<model::CommittedDelivery> deliveries) {
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

void Node::committed() {
  State& state = *state_;
  state.control.post([&state] {
    if (state.keeper.has_peers()) state.notifier.notify_soon();
  });
}

void Node::drain(std::chrono::milliseconds timeout) {
  State& state = *state_;
  const auto deadline = base::BootClock::now() + timeout;
  state.everywhere([](Shard& shard) { shard.stop_sending(); });
  for (const auto& each : state.shards)
    runtime::run_on(each->loop, each->tasks,
                    [&shard = each->shard, deadline] { return shard.drain(deadline); });
}

void Node::stop() {
  State& state = *state_;
  if (!state.control_thread.joinable()) return;
  // First: once the node has left, others send what is still unsettled.
  for (const auto& each : state.shards)
    runtime::run_on(each->loop, each->tasks, [&shard = each->shard] { return shard.cut_off(); });
  runtime::run_on(state.control, state.control_tasks, [&state] { return state.stop_control(); });
  for (const auto& each : state.shards) {
    runtime::run_on(each->loop, each->tasks, [&shard = each->shard] { return shard.stop(); });
    each->loop.stop();
    each->thread.join();
  }
  state.control.stop();
  state.control_thread.join();
}

}  // namespace postrider::delivery
