// Sources as the receiving route needs them, with their keys decrypted. One per loop, used on its thread
// only. Entries are dropped at changes of the control log, and in any case after a few seconds. Unknown ids
// have entries of their own, few and short-lived: guessing ids costs neither queries nor memory, and pushes
// no known source out.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "postrider/base/time.hpp"
#include "postrider/inbox/source_secrets.hpp"
#include "postrider/registry/control_log.hpp"

namespace postrider::inbox {

struct LoadedSource {
  Source source;
  Verification how;
  std::vector<ActiveKey> keys;

  std::vector<VerifyKey> keys_at(base::Timestamp now) const;  // those whose overlap has not ended
};
using SourcePtr = std::shared_ptr<const LoadedSource>;  // a request in progress keeps the one it began with

LoadedSource loaded_source(Source source, std::vector<ActiveKey> keys);

class SourceCache {
 public:
  static constexpr std::chrono::milliseconds kLifetime{5'000};
  static constexpr size_t kEntriesMax = 10'000;
  static constexpr std::chrono::milliseconds kUnknownLifetime{1'000};
  static constexpr size_t kUnknownMax = 1'000;

  struct Found {
    bool is_known = false;  // false: ask the database
    SourcePtr source;       // null: there is none
  };
  Found find(std::string_view id, base::SteadyTime now) const;
  // Queries the database and caches the result.
  runtime::Task<SourcePtr> load(pg::Link& link, const crypto::MasterKeys& keys, SourceId id);

  void apply(std::span<const registry::Change> changes);
  size_t size() const { return entries_.size(); }
  size_t unknown_size() const { return unknown_.size(); }

 private:
  void keep(SourceId id, SourcePtr source, base::SteadyTime asked_at);

  struct Entry {
    SourcePtr source;
    base::SteadyTime expires;
  };
  uint64_t generation_ = 0;  // counts changes, so that a result from before one is not cached after it
  std::unordered_map<std::string, Entry> entries_;
  std::unordered_map<std::string, base::SteadyTime> unknown_;  // until when
};

}  // namespace postrider::inbox
