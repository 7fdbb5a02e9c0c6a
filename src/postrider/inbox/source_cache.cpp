#include "postrider/inbox/source_cache.hpp"

#include <utility>

#include "postrider/telemetry/log.hpp"

namespace postrider::inbox {

std::vector<VerifyKey> LoadedSource::keys_at(base::Timestamp now) const {
  std::vector<VerifyKey> active;
  for (const ActiveKey& key : keys)
    if (!key.expires_at || *key.expires_at > now) active.push_back(key.key);
  return active;
}

LoadedSource loaded_source(Source source, std::vector<ActiveKey> keys) {
  LoadedSource loaded;
  loaded.how.provider = source.provider;
  loaded.how.scheme = source.settings.signature;
  loaded.how.tolerance = std::chrono::seconds(source.settings.tolerance_seconds);
  if (auto pieces = parse_template(source.settings.signature.signed_text))
    loaded.how.signed_pieces = std::move(*pieces);
  loaded.source = std::move(source);
  loaded.keys = std::move(keys);
  return loaded;
}

SourceCache::Found SourceCache::find(std::string_view id, base::SteadyTime now) const {
  const auto entry = entries_.find(std::string(id));
  if (entry == entries_.end() || entry->second.expires <= now) return {};
  return {true, entry->second.source};
}

runtime::Task<SourcePtr> SourceCache::load(pg::Link& link, const crypto::MasterKeys& keys, SourceId id) {
  const uint64_t generation = generation_;
  const base::SteadyTime asked_at = base::BootClock::now();
  SourcePtr loaded;
  std::optional<Source> source = co_await find_source(link, id);
  if (source) {
    if (!source->can_verify()) telemetry::log_error("source_unreadable").field("source", id);
    std::vector<ActiveKey> active = co_await load_active_keys(link, keys, *source);
    loaded = std::make_shared<const LoadedSource>(loaded_source(std::move(*source), std::move(active)));
  }
  if (generation == generation_) {
    if (entries_.size() >= kEntriesMax) entries_.clear();
    entries_.insert_or_assign(std::move(id),
                              Entry{loaded, asked_at + (loaded ? kLifetime : kMissingLifetime)});
  }
  co_return loaded;
}

void SourceCache::apply(std::span<const registry::Change> changes) {
  for (const auto& change : changes) {
    if (change.kind != registry::ChangeKind::source && change.kind != registry::ChangeKind::other) continue;
    ++generation_;
    entries_.clear();
    return;
  }
}

}  // namespace postrider::inbox
