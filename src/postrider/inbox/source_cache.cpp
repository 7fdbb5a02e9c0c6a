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
  if (!model::is_caller_id(id)) return {true, nullptr};  // no source has such an id
  const std::string wanted(id);
  const auto entry = entries_.find(wanted);
  if (entry != entries_.end() && now < entry->second.expires) return {true, entry->second.source};
  const auto unknown = unknown_.find(wanted);
  if (unknown != unknown_.end() && now < unknown->second) return {true, nullptr};
  return {};
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
  if (generation == generation_) keep(std::move(id), loaded, asked_at);
  co_return loaded;
}

// A full map starts afresh: entries live for seconds, so evicting single ones is not worth the bookkeeping.
void SourceCache::keep(SourceId id, SourcePtr source, base::SteadyTime asked_at) {
  if (!source) {
    if (unknown_.size() >= kUnknownMax) unknown_.clear();
    unknown_.insert_or_assign(std::move(id), asked_at + kUnknownLifetime);
    return;
  }
  if (entries_.size() >= kEntriesMax) entries_.clear();
  entries_.insert_or_assign(std::move(id), Entry{std::move(source), asked_at + kLifetime});
}

void SourceCache::apply(std::span<const registry::Change> changes) {
  for (const auto& change : changes) {
    if (change.kind != registry::ChangeKind::source && change.kind != registry::ChangeKind::other) continue;
    ++generation_;
    entries_.clear();
    unknown_.clear();
    return;
  }
}

}  // namespace postrider::inbox
