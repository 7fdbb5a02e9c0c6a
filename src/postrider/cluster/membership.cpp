#include "postrider/cluster/membership.hpp"

#include <algorithm>
#include <utility>

#include "postrider/base/check.hpp"
#include "postrider/base/fail_point.hpp"
#include "postrider/base/version.hpp"
#include "postrider/cluster/membership.sql.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::cluster {

namespace {

using namespace std::chrono_literals;

constexpr int kBeatsPerLease = 10;
// This fraction of the lease is a margin for clocks that drift and threads that are late: 1/5.
constexpr int kMarginPart = 5;
constexpr int kLooksPerLease = 4;  // at least
constexpr base::Microseconds kClockTolerance = 20ms;
constexpr int kRegisterTries = 20;
constexpr auto kUniqueViolation = "23505";

}  // namespace

void MembershipOptions::validate() const {
  CHECK(lease > 0ms && pass_interval > 0ms && patience >= 0ms);
}

int fair_share(int buckets, int nodes, int rank) {
  return buckets / nodes + (rank < buckets % nodes ? 1 : 0);
}

Membership::Membership(runtime::Loop& loop, pg::Link& link, LeaseClock& lease, model::IdSource& ids,
                       const telemetry::Metrics& metrics, MembershipOptions options, MembershipEvents events)
    : Service(loop),
      link_(link),
      lease_(lease),
      ids_(ids),
      metrics_(metrics),
      options_(runtime::validated(std::move(options))),
      events_(std::move(events)) {}

runtime::Task<void> Membership::join() {
  for (int tries = 1;; ++tries) {
    try {
      const auto before = base::BootClock::now();
      const std::string version(base::kVersion);
      const auto registered = co_await link_.run(sql::register_node{.node = options_.node_id.uuid,
                                                                    .name = options_.name,
                                                                    .version = version,
                                                                    .delivers = options_.delivers});
      const auto read_at = before + (base::BootClock::now() - before) / 2;
      const auto row = registered.front();
      if (row.slot < 0 || row.slot >= model::IdSource::kSlots)
        throw pg::Error(pg::Kind::other, "the slot of this node is too large for an ID");
      ids_.synchronise(row.slot, row.read_at, read_at);
      renewed(before);
      co_return;
    } catch (const pg::Error& error) {
      if (error.sqlstate() != kUniqueViolation || tries == kRegisterTries) throw;
    }
  }
}

runtime::Task<runtime::SteadyTime> Membership::pass(runtime::SteadyTime) {
  try {
    co_await beat();
    co_await look();
  } catch (const pg::Error& error) {
    telemetry::log_warn("lease_pass_failed")
        .field("error", error.what())
        .field("may_send", lease_.is_valid(base::BootClock::now()));
  }
  co_return base::BootClock::now() + options_.pass_interval;
}

runtime::Task<void> Membership::beat() {
  const auto before = base::BootClock::now();
  if (before - beat_at_ < options_.lease / kBeatsPerLease) co_return;
  const auto beaten = co_await link_.run(sql::beat{.node = options_.node_id.uuid});
  if (beaten.empty()) {
    telemetry::log_warn("node_was_declared_dead").field("node_id", options_.node_id.public_id());
    lose_everything();
    co_await join();
    co_return;
  }
  // Signatures carry this time: a database whose clock was set must not make them stale.
  const auto took = std::chrono::duration_cast<base::Microseconds>(base::BootClock::now() - before);
  ids_.correct(beaten.front().read_at, before + took / 2, took / 2 + kClockTolerance);
  renewed(before);
  events_.renewed();
}

void Membership::renewed(base::SteadyTime sent_at) {
  beat_at_ = sent_at;
  lease_.renew({.sent_at = sent_at, .until = sent_at + options_.lease - options_.lease / kMarginPart});
}

runtime::Task<void> Membership::look() {
  pg::Batch batch;
  batch.add(sql::free_orphans{});
  const auto nodes = batch.add(sql::nodes{});
  const auto leased = batch.add(sql::leases{});
  pg::Results results = co_await link_.run(std::move(batch));
  std::map<model::NodeId, int64_t> heartbeats;
  std::vector<model::NodeId> delivering;
  for (const auto& node : results.take(nodes)) {
    heartbeats[{node.id}] = node.heartbeat;
    if (node.delivers) delivering.push_back({node.id});
  }
  std::vector<BucketLease> leases;
  for (const auto& row : results.take(leased))
    leases.push_back({row.bucket, {row.owner.value_or(base::Uuid{})}, row.epoch});
  compare(leases);
  co_await reap_dead_nodes(heartbeats);
  has_peers_ = delivering.size() > (options_.delivers ? 1u : 0u);
  if (!options_.delivers || is_stopping()) co_return;
  const auto me = std::find(delivering.begin(), delivering.end(), options_.node_id);
  if (me == delivering.end()) co_return;
  const int share = fair_share(static_cast<int>(leases.size()), static_cast<int>(delivering.size()),
                               static_cast<int>(me - delivering.begin()));
  const auto mine = static_cast<int>(std::count_if(
      owned_.begin(), owned_.end(), [this](const auto& held) { return !releasing_.contains(held.first); }));
  if (mine < share) co_await take(share - mine);
  if (mine > share) release_surplus(mine - share);
}

// The table is authoritative: a bucket that this node no longer owns there is dropped here.
void Membership::compare(const std::vector<BucketLease>& leases) {
  size_t lost = 0;
  for (const BucketLease& lease : leases) {
    const auto held = owned_.find(lease.bucket);
    const bool is_held = held != owned_.end();
    const bool is_ours = lease.owner == options_.node_id;
    if (is_held && !(is_ours && lease.epoch == held->second)) {
      ++lost;
      owned_.erase(held);
      events_.lost(lease.bucket);
    } else if (!is_held && is_ours && options_.delivers && !releasing_.contains(lease.bucket)) {
      // The response to a take or a release was lost. No other node will serve this bucket.
      owned_[lease.bucket] = lease.epoch;
      events_.taken(lease.bucket, lease.epoch);
    }
  }
  if (lost > 0) telemetry::log_warn("buckets_lost").field("count", lost).field("owned", owned_.size());
  metrics_.leases_held.set(static_cast<double>(owned_.size()));
}

void Membership::lose_everything() {
  lease_.end();
  owned_.clear();
  events_.lost_everything(lease_.term());
  metrics_.leases_held.set(0);
}

void Membership::server_changed() {
  telemetry::log_warn("database_changed").field("note", "leases continue as the new server has them");
  lose_everything();
  peers_.clear();
  beat_at_ = {};
  wake();
}

runtime::Task<void> Membership::reap_dead_nodes(const std::map<model::NodeId, int64_t>& heartbeats) {
  // A node that could not read the table declares no other node dead: after an outage the others could not
  // send heartbeats either.
  // Therefore only part of the time between two reads counts, and a node is dead only if several reads in a
  // row found no new heartbeat.
  const auto now = base::BootClock::now();
  const auto watched =
      std::min<base::SteadyTime::duration>(now - looked_at_, options_.lease / kLooksPerLease);
  looked_at_ = now;
  std::erase_if(peers_, [&](const auto& peer) { return !heartbeats.contains(peer.first); });
  for (const auto& [id, heartbeat] : heartbeats) {
    if (id == options_.node_id) continue;
    Peer& peer = peers_[id];
    if (peer.heartbeat != heartbeat) {
      peer = {heartbeat, {}};
      continue;
    }
    peer.still_for += watched;
    if (peer.still_for < options_.lease) continue;
    telemetry::log_warn("node_declared_dead").field("node_id", id.public_id());
    co_await link_.run(sql::declare_dead{.node = id.uuid, .seen_heartbeat = heartbeat});
  }
}

runtime::Task<void> Membership::take(int count) {
  base::reach("ownership.before_take");
  const auto taken = co_await link_.run(sql::take{.count_max = count, .node = options_.node_id.uuid});
  base::reach("ownership.after_take");
  for (const auto& lease : taken) {
    owned_[lease.bucket] = lease.epoch;
    events_.taken(lease.bucket, lease.epoch);
  }
  if (!taken.empty())
    telemetry::log_info("buckets_taken").field("count", taken.size()).field("owned", owned_.size());
  metrics_.leases_held.set(static_cast<double>(owned_.size()));
}

void Membership::release_surplus(int count) {
  for (auto held = owned_.rbegin(); held != owned_.rend() && count > 0; ++held) {
    if (!releasing_.insert(held->first).second) continue;
    --count;
    spawn(release(held->first, held->second));
  }
}

runtime::Task<void> Membership::release(int bucket, int64_t epoch) {
  auto draining = events_.drain(bucket, options_.patience);
  const bool is_drained = co_await draining;
  const auto held = owned_.find(bucket);
  if (is_drained && held != owned_.end() && held->second == epoch) {
    owned_.erase(held);
    events_.lost(bucket);
    base::reach("ownership.before_release");
    try {
      co_await link_.run(sql::release{.node = options_.node_id.uuid, .bucket = bucket, .epoch = epoch});
    } catch (const pg::Error& error) {
      // The bucket may or may not be released. The next read of the table shows: if it is still ours, it is
      // served again.
      telemetry::log_warn("bucket_release_failed").field("bucket", bucket).field("error", error.what());
    }
  }
  releasing_.erase(bucket);
}

runtime::Task<void> Membership::finish() {
  lose_everything();
  try {
    co_await link_.run(sql::leave{.node = options_.node_id.uuid});
  } catch (const pg::Error& error) {
    telemetry::log_warn("leave_failed").field("error", error.what());
  }
}

}  // namespace postrider::cluster
