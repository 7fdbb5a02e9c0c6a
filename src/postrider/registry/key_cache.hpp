// Keys that were looked up a moment ago, so that neither a busy publisher nor a client with a wrong key costs
// a query per request. One per loop, used on its thread only.
//
// A revoked key works until its entry is dropped: when the control log reports a change, and in any case
// after `lifetime`. An expired key stops at its time. Unknown keys have entries of their own, few and
// short-lived, so that made-up keys neither use memory nor push known ones out.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "postrider/base/time.hpp"
#include "postrider/registry/control_log.hpp"
#include "postrider/registry/keys.hpp"

namespace postrider::registry {

class KeyCache {
 public:
  struct Options {
    size_t entries_max = 10'000;
    std::chrono::milliseconds lifetime{5'000};
    size_t unknown_max = 1'000;
    std::chrono::milliseconds unknown_lifetime{1'000};
  };
  KeyCache() = default;
  explicit KeyCache(Options options) : options_(options) {}

  struct Found {
    bool is_known = false;               // false: ask the database
    std::optional<Principal> principal;  // none: there is no such key
  };
  Found find(const KeyHash& hash, base::SteadyTime now) const;

  // Taken before the lookup and passed with its result: a result from before a change is not cached.
  using Generation = uint64_t;
  Generation generation() const { return generation_; }
  struct LookUp {
    std::optional<FoundKey> found;  // none: there is no such key
    base::SteadyTime asked_at;
    Generation generation;
  };
  void keep(const KeyHash& hash, const LookUp& look_up);

  void apply(std::span<const Change> changes);
  void clear();
  size_t size() const { return entries_.size(); }
  size_t unknown_size() const { return unknown_.size(); }

 private:
  struct Entry {
    Principal principal;
    base::SteadyTime ends_at;
  };
  Options options_;
  Generation generation_ = 0;
  // Both by the bytes of the hash.
  std::unordered_map<std::string, Entry> entries_;
  std::unordered_map<std::string, base::SteadyTime> unknown_;
};

// True if a change may concern keys: their own change, or the deletion of their tenant.
bool concerns_keys(const Change& change);

}  // namespace postrider::registry
