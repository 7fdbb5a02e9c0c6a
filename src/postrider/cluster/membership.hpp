// Keeps this node registered and its share of the buckets leased.
//
// The node increments its heartbeat. A node that sees another's heartbeat unchanged for the lease time, by
// its own clock, declares that node dead and frees its buckets. This node may send until the time its last
// successful heartbeat was *sent* plus the lease, less a margin; after that it stays silent until it has
// heard from the database again.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "postrider/cluster/lease_clock.hpp"
#include "postrider/cluster/metrics.hpp"
#include "postrider/model/id_source.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/service.hpp"

namespace postrider::cluster {

struct MembershipOptions {
  model::NodeId node_id;
  std::string name;
  bool delivers = true;
  std::chrono::milliseconds lease{10'000};
  std::chrono::milliseconds pass_interval{250};
  // While a bucket is drained for its release, its endpoints wait this long for the slow ones among them.
  std::chrono::milliseconds patience{5'000};

  void validate() const;
};

// Called on the membership's loop.
struct MembershipEvents {
  std::function<void(int bucket, int64_t epoch)> taken;
  std::function<void(int bucket)> lost;  // stop at once; also called after a drain, before the release
  // All at once; buckets that are taken from now on are held under that term of the lease.
  std::function<void(int64_t term)> lost_everything;
  // True: nothing of it is in progress or will start. False: it is lost, or this node stops.
  std::function<runtime::Task<bool>(int bucket, std::chrono::milliseconds patience)> drain;
  std::function<void()> renewed;
};

// The number of buckets for the node at place `rank` of `nodes`: as equal as possible.
int fair_share(int buckets, int nodes, int rank);

class Membership : public runtime::Service {
 public:
  Membership(runtime::Loop& loop, pg::Link& link, LeaseClock& lease, model::IdSource& ids,
             const telemetry::Metrics& metrics, MembershipOptions options, MembershipEvents events);

  // Registers the node; returns when its ids are unique. Throws pg::Error when the database does not let it.
  runtime::Task<void> join();

  // A failover has happened, and the new server may lack the last changes of the previous one: drops what is
  // in memory and starts again from the buckets that the new server's table assigns to this node.
  void server_changed();

  bool has_peers() const { return has_peers_; }
  const std::map<int, int64_t>& owned() const { return owned_; }

 private:
  struct Peer {
    int64_t heartbeat = -1;
    base::SteadyTime::duration still_for{};  // its heartbeat, while we watched
  };
  struct BucketLease {
    int bucket;
    model::NodeId owner;  // nil: free
    int64_t epoch;
  };

  runtime::Task<runtime::SteadyTime> pass(runtime::SteadyTime now) override;
  // Releases all buckets and leaves. The caller has drained them; a drain in progress returns when stop() is
  // called.
  runtime::Task<void> finish() override;
  runtime::Task<void> beat();
  runtime::Task<void> look();
  runtime::Task<void> reap_dead_nodes(const std::map<model::NodeId, int64_t>& heartbeats);
  runtime::Task<void> take(int count);
  void compare(const std::vector<BucketLease>& leases);
  void renewed(base::SteadyTime sent_at);
  void lose_everything();
  void release_surplus(int count);
  runtime::Task<void> release(int bucket, int64_t epoch);

  pg::Link& link_;
  LeaseClock& lease_;
  model::IdSource& ids_;
  Metrics metrics_;
  MembershipOptions options_;
  MembershipEvents events_;
  std::map<int, int64_t> owned_;  // bucket → epoch
  std::set<int> releasing_;       // until the release has completed
  std::map<model::NodeId, Peer> peers_;
  base::SteadyTime beat_at_{};
  base::SteadyTime looked_at_{};  // at the others' heartbeats
  bool has_peers_ = false;
};

}  // namespace postrider::cluster
