// Where events go, as the last publish of the same tenant, type and version found it in the registry. Most
// events follow such a route again; then publishing looks nothing up but the tenant's revision, which every
// change of the tenant, its endpoints and subscriptions raises. One loop. Internal to publish/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "postrider/model/ids.hpp"
#include "postrider/publish/new_event.hpp"

namespace postrider::publish {

struct Route {
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

class KnownRoutes {
 public:
  explicit KnownRoutes(size_t targets_max = 100'000) : targets_max_(targets_max) {}

  // Routes are those of one server: over another connection there may be one that lacks the last changes and
  // gives their revisions to other ones.
  void follow(uint64_t connection);
  // The pointer holds until the next remember() or forget().
  const Route* find(const NewEvent& event) const;
  void remember(const NewEvent& event, Route route);
  // What is remembered of the tenant is not so any more.
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
  std::unordered_map<Key, Route, Hash, Equal> routes_;
  std::unordered_map<std::string, int64_t> revisions_;  // the latest seen; routes of older ones are stale
};

}  // namespace postrider::publish
