#include "postrider/publish/keyed_commit.hpp"

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "postrider/publish/keys.sql.hpp"
#include "postrider/publish/statements.hpp"

namespace postrider::publish {

FollowerSplit split_followers(const PendingEvents& events) {
  using Key = std::tuple<std::string_view, bool, std::string_view>;
  std::map<Key, const PendingEvent*> owners;
  FollowerSplit split;
  for (PendingEvent* pending : events) {
    const NewEvent& event = pending->event;
    std::vector<Key> keys;
    if (event.id) keys.emplace_back(event.tenant_id, true, *event.id);
    if (event.idempotency_key) keys.emplace_back(event.tenant_id, false, *event.idempotency_key);
    const PendingEvent* leader = nullptr;
    for (const Key& key : keys) {
      const auto owner = owners.find(key);
      if (owner == owners.end()) continue;
      // Of two leaders the one with other content decides.
      if (leader == nullptr || owner->second->request_hash != pending->request_hash) leader = owner->second;
    }
    if (leader != nullptr) {
      split.followers.push_back({pending, leader});
      continue;
    }
    split.leaders.push_back(pending);
    for (const Key& key : keys) owners.emplace(key, pending);
  }
  return split;
}

PendingEvents resolve_followers(const std::vector<Follower>& followers) {
  PendingEvents left;
  for (const auto& [pending, leader] : followers) {
    if (!leader->result) {
      left.push_back(pending);
      continue;
    }
    const auto* published = std::get_if<Published>(&*leader->result);
    const auto* rejected = std::get_if<Rejected>(&*leader->result);
    if (pending->request_hash == leader->request_hash) {
      if (published != nullptr)
        pending->result = Published{published->response, true};
      else
        pending->result = *rejected;
    } else if (published != nullptr) {
      pending->result = Rejected{Rejected::Reason::conflict,
                                 "the event ID or Idempotency-Key was already used with different content"};
    } else {
      left.push_back(pending);
    }
  }
  return left;
}

namespace {

using runtime::Task;
using std::views::transform;

// One key of one event, as event_key stores it.
struct KeyRow {
  std::string_view tenant_id, kind, key;
  PendingEvent* pending = nullptr;
  bool is_taken = false;
};
using KeyRows = std::vector<KeyRow>;

// Every key of the events, in the order in which event_key is locked.
KeyRows key_rows(const PendingEvents& events) {
  KeyRows keys;
  for (PendingEvent* pending : events) {
    const NewEvent& event = pending->event;
    if (event.id) keys.push_back({event.tenant_id, "id", *event.id, pending, false});
    if (event.idempotency_key)
      keys.push_back({event.tenant_id, "key", *event.idempotency_key, pending, false});
  }
  std::sort(keys.begin(), keys.end(), [](const KeyRow& a, const KeyRow& b) {
    return std::tie(a.tenant_id, a.kind, a.key) < std::tie(b.tenant_id, b.kind, b.key);
  });
  return keys;
}

base::Uuid event_id(const KeyRow& key) {
  return key.pending->id().uuid;
}
pg::Bytes request_hash_of(const KeyRow& key) {
  return pg::Bytes{key.pending->request_hash.view()};
}

// The steps of one transaction. An event is written if, and only if, this transaction has taken all its keys:
// then no other transaction can write an event with one of them before this one ends, and every repetition
// that commits later finds the response that is stored here.
class KeyedCommit {
 public:
  KeyedCommit(FanoutPlanCache& plans, const PendingEvents& events, const CommitSettings& settings)
      : plans_(plans), events_(events), settings_(settings), keys_(key_rows(events)) {}

  // Waits for transactions that have taken the same keys and are not committed yet.
  pg::Batch take() {
    std::set<std::string_view> tenants;
    for (const PendingEvent* pending : events_) tenants.insert(pending->event.tenant_id);
    pg::Batch batch;
    known_tenants_ = batch.add(sql::known_tenants{.tenants = tenants});
    taken_ = batch.add(sql::take_keys{.tenants = transform(keys_, &KeyRow::tenant_id),
                                      .kinds = transform(keys_, &KeyRow::kind),
                                      .keys = transform(keys_, &KeyRow::key),
                                      .event_ids = transform(keys_, event_id),
                                      .request_hashes = transform(keys_, request_hash_of)});
    return batch;
  }

  // Divides the events into those to write (all keys taken), those that came too late (a key belongs to an
  // earlier event) and those whose tenant is unknown.
  void divide(pg::Results results) {
    const auto tenants = results.take(known_tenants_);
    const auto taken = results.take(taken_);
    std::unordered_set<std::string_view> known;
    for (const auto& row : tenants) known.insert(row.id);
    std::set<std::pair<base::Uuid, std::string_view>> won;
    for (const auto& row : taken) won.emplace(row.event_id, row.kind);
    for (auto& key : keys_) {
      key.is_taken = won.contains(std::pair(key.pending->id().uuid, key.kind));
      // Race: a tenant that is created between the two statements is unknown to the first and known to the
      // second, since each has a snapshot of its own. The key is taken, so its event must be written, or the
      // key would give every repetition an empty response.
      if (key.is_taken) known.insert(key.pending->event.tenant_id);
    }
    std::unordered_set<const PendingEvent*> late;
    for (const auto& key : keys_)
      if (!key.is_taken && known.contains(key.pending->event.tenant_id)) late.insert(key.pending);
    for (PendingEvent* pending : events_) {
      if (!known.contains(pending->event.tenant_id))
        commit_.results.push_back({pending, unknown_tenant()});
      else if (!late.contains(pending))
        (pending->has_versions() ? versioned_ : plain_).push_back(pending);
    }
    // An event may have taken one of its two keys and lost the other. It is not written, so it must not keep
    // the one it has.
    for (const auto& key : keys_) {
      if (!late.contains(key.pending)) continue;
      (key.is_taken ? spare_ : lost_).push_back(key);
    }
  }

  // The lost keys are read by a statement of their own: the snapshot of take_keys is older than the commit
  // for which it had to wait.
  pg::Batch read_and_publish() {
    pg::Batch batch;
    if (!lost_.empty())
      read_ = batch.add(sql::read_keys{.tenants = transform(lost_, &KeyRow::tenant_id),
                                       .kinds = transform(lost_, &KeyRow::kind),
                                       .keys = transform(lost_, &KeyRow::key)});
    if (!spare_.empty()) release(batch, spare_);
    if (!plain_.empty()) published_ = add_publish(batch, plain_, settings_);
    if (!versioned_.empty()) versions_published_ = add_publish_versions(batch, versioned_, settings_);
    return batch;
  }

  void read(pg::Results results) {
    if (read_) resolve_late(results.take(*read_));
    if (versions_published_)
      read_versions_published(results.take(*versions_published_), versioned_, settings_, commit_);
    if (published_) read_published(results.take(*published_), plain_, settings_, plans_, commit_);
  }

  // Stores the responses of the events that were written, for their repetitions. The keys of rejected events
  // are free again.
  pg::Batch keep() const {
    std::unordered_map<const PendingEvent*, const PublishResult*> results;
    for (const auto& result : commit_.results) results.emplace(result.pending, &result.result);
    KeyRows kept, rejected;
    std::vector<std::string_view> responses;
    for (const auto& key : keys_) {
      if (!is_winner(key.pending)) continue;
      if (const auto* published = std::get_if<Published>(results.at(key.pending))) {
        kept.push_back(key);
        responses.push_back(published->response);
      } else {
        rejected.push_back(key);
      }
    }
    pg::Batch batch;
    if (!kept.empty())
      batch.add(sql::keep_responses{.tenants = transform(kept, &KeyRow::tenant_id),
                                    .kinds = transform(kept, &KeyRow::kind),
                                    .keys = transform(kept, &KeyRow::key),
                                    .responses = responses});
    if (!rejected.empty()) release(batch, rejected);
    if (!orphaned_.empty())
      batch.add(sql::free_orphaned_keys{.tenants = transform(orphaned_, &KeyRow::tenant_id),
                                        .kinds = transform(orphaned_, &KeyRow::kind),
                                        .keys = transform(orphaned_, &KeyRow::key)});
    // Race: an earlier attempt of this batch with an unknown result may have committed after its owners were
    // notified to read the table. Taking its keys waited for that commit, so notify them again.
    if (!own_.empty()) {
      const auto range = delivery_range_of(own_);
      batch.add(sql::log_unknown{.first_id = range.first.uuid, .last_id = range.last.uuid});
    }
    return batch;
  }

  Commit take_result() { return std::move(commit_); }

 private:
  static void release(pg::Batch& batch, const KeyRows& keys) {
    batch.add(sql::release_keys{.tenants = transform(keys, &KeyRow::tenant_id),
                                .kinds = transform(keys, &KeyRow::kind),
                                .keys = transform(keys, &KeyRow::key),
                                .event_ids = transform(keys, event_id)});
  }
  bool is_winner(const PendingEvent* pending) const {
    const PendingEvents& written = pending->has_versions() ? versioned_ : plain_;
    return std::find(written.begin(), written.end(), pending) != written.end();
  }

  // Gives late events the result of the event that has their key.
  void resolve_late(const pg::RowsOf<sql::read_keys>& rows) {
    std::unordered_map<PendingEvent*, PublishResult> results;
    for (const auto& row : rows) {
      const KeyRow& key = lost_[static_cast<size_t>(row.place - 1)];
      PendingEvent* pending = key.pending;
      if (row.response.empty()) {
        orphaned_.push_back(key);
        continue;
      }
      const bool is_own = row.event_id == pending->id().uuid;
      if (is_own) own_.push_back(pending);
      if (row.request_hash.view == pending->request_hash.view())  // unless its other key differs
        results.try_emplace(pending, Published{std::string(row.response), !is_own});
      else
        results.insert_or_assign(
            pending, Rejected{Rejected::Reason::conflict,
                              "the " + std::string(key.kind == "id" ? "event ID" : "Idempotency-Key") +
                                  " was already used with different content"});
    }
    // Race: a key that belonged to another event when it was tried was removed by retention before it was
    // read.
    if (rows.size() < lost_.size())
      throw pg::Error(pg::Kind::retry, "an event key was removed while it was read");
    set_aside_orphaned(results);
    for (auto& [pending, result] : results) commit_.results.push_back({pending, std::move(result)});
  }

  // Their keys are free once this transaction is committed. Then they are published as if they were the
  // first.
  void set_aside_orphaned(const std::unordered_map<PendingEvent*, PublishResult>& resolved) {
    std::unordered_set<PendingEvent*> aside;
    for (const auto& key : orphaned_)
      if (!resolved.contains(key.pending) && aside.insert(key.pending).second)
        commit_.stale.push_back(key.pending);
  }

  FanoutPlanCache& plans_;
  const PendingEvents& events_;
  const CommitSettings& settings_;
  KeyRows keys_;
  PendingEvents plain_, versioned_;  // to write
  KeyRows lost_;                     // keys that belong to other events
  KeyRows spare_;                    // keys taken by events that lost their other one
  KeyRows orphaned_;                 // keys stored without a response: no event was written for them
  PendingEvents own_;                // committed by an earlier attempt of the same batch
  pg::Pending<sql::known_tenants> known_tenants_{};
  pg::Pending<sql::take_keys> taken_{};
  std::optional<pg::Pending<sql::read_keys>> read_;
  std::optional<pg::Pending<sql::publish>> published_;
  std::optional<pg::Pending<sql::publish_versions>> versions_published_;
  Commit commit_;
};

}  // namespace

Task<Commit> write_keyed(pg::Transaction& transaction, FanoutPlanCache& plans, PendingEvents events,
                         CommitSettings settings) {
  KeyedCommit keyed(plans, events, settings);
  auto take = keyed.take();
  pg::Results taken = co_await transaction.run(std::move(take));
  keyed.divide(std::move(taken));
  auto publish = keyed.read_and_publish();
  if (!publish.empty()) {
    pg::Results results = co_await transaction.run(std::move(publish));
    keyed.read(std::move(results));
  }
  auto keep = keyed.keep();
  if (!keep.empty()) co_await transaction.run(std::move(keep));
  co_return keyed.take_result();
}

}  // namespace postrider::publish
