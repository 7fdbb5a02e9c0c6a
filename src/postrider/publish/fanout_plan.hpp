// The fan-out plan of an event: the endpoints to which the last event of the same tenant, type and version
// went. Most events have the same plan again; then publishing looks up nothing but the tenant's revision,
// which every change of the tenant, its endpoints and subscriptions raises. One loop. Internal to publish/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "postrider/pg/batch.hpp"
#include "postrider/publish/pending_event.hpp"
#include "postrider/publish/publish.sql.hpp"

namespace postrider::publish {

struct Commit;
struct CommitSettings;

struct FanoutPlan {
  struct Target {
    model::EndpointId endpoint;
    int bucket = 0;
    model::DeliveryId sample;  // a delivery to this endpoint; its tail is that of every other one
  };
  std::vector<Target> targets;
  int64_t revision = 0;  // of the tenant, when the targets were looked up
  int32_t data_bytes_max = 0;
  std::optional<double> publish_rate_per_second;
};

class FanoutPlanCache {
 public:
  explicit FanoutPlanCache(size_t targets_max = 100'000) : targets_max_(targets_max) {}

  // Plans belong to one server. Another connection may reach a server that lacks the last changes and numbers
  // other ones with their revisions.
  void follow(uint64_t connection);
  // The pointer is valid until the next remember() or forget().
  const FanoutPlan* find(const NewEvent& event) const;
  void remember(const NewEvent& event, FanoutPlan plan);
  // Invalidates all plans of the tenant.
  void forget(std::string_view tenant) { revisions_.erase(std::string(tenant)); }

 private:
  struct Key {
    std::string tenant_id, type;
    std::optional<std::string> version;
  };
  // Looked up without copying.
  struct KeyView {
    KeyView(const Key& key) : tenant_id(key.tenant_id), type(key.type), version(key.version) {}
    KeyView(const NewEvent& event) : tenant_id(event.tenant_id), type(event.type), version(event.version) {}
    bool operator==(const KeyView&) const = default;
    std::string_view tenant_id, type;
    std::optional<std::string_view> version;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(const KeyView& key) const;
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const KeyView& a, const KeyView& b) const { return a == b; }
  };

  void clear();

  size_t targets_max_;
  uint64_t connection_ = 0;
  size_t targets_ = 0;
  std::unordered_map<Key, FanoutPlan, Hash, Equal> plans_;
  std::unordered_map<std::string, int64_t> revisions_;  // the latest seen; plans of older ones are stale
};

// The events of a batch that have a plan, and the statement that publishes them.
class PlannedEvents {
 public:
  // False: the event has no plan, or more data than its plan allows.
  bool add(PendingEvent* pending, const FanoutPlanCache& cache);
  bool empty() const { return events_.empty(); }

  pg::Pending<sql::publish_known> add_to(pg::Batch& batch, const CommitSettings& settings);
  // Adds a result for each event, and its deliveries; or, if a plan was out of date and nothing was written,
  // all events as stale.
  void read(const pg::RowsOf<sql::publish_known>& rows, FanoutPlanCache& cache, Commit& commit);

 private:
  PendingEvents events_;
  std::vector<const FanoutPlan*> plans_;  // of each
  std::vector<model::CommittedDelivery> deliveries_;
};

}  // namespace postrider::publish
