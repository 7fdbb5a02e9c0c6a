// Keys that were found a moment ago, so that a busy publisher does not cost a look-up per request. One per
// loop, used on its thread only. A revoked key works on until its entry is dropped: at the change of the
// control log, and in any case after `lifetime`.
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
  };
  KeyCache() = default;
  explicit KeyCache(Options options) : options_(options) {}

  std::optional<Principal> find(const KeyHash& hash, base::SteadyTime now) const;

  // Taken before the look-up and given back with its result: what was looked up before a change is not kept.
  using Generation = uint64_t;
  Generation generation() const { return generation_; }
  struct Entry {
    Principal principal;
    base::SteadyTime found_at;
    Generation generation;
  };
  void keep(const KeyHash& hash, Entry entry);

  void apply(std::span<const Change> changes);
  void clear();
  size_t size() const { return entries_.size(); }

 private:
  Options options_;
  Generation generation_ = 0;
  std::unordered_map<std::string, Entry> entries_;  // by the bytes of the hash
};

}  // namespace postrider::registry
