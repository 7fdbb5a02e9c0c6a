#include "postrider/publish/commit.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "postrider/base/fail_point.hpp"
#include "postrider/publish/keys.sql.hpp"
#include "postrider/publish/publish.sql.hpp"
#include "postrider/publish/recover.sql.hpp"
#include "postrider/publish/statements.hpp"
#include "postrider/publish/versions.hpp"
#include "postrider/publish/versions.sql.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::publish {

namespace {

using runtime::Task;

constexpr model::NodeId kNobody{};

bool has_versions(const Draft& draft) {
  return !draft.event.other_versions.empty();
}

// Drafts without keys, in one round trip: what is known to the routes, then what is not, then those in
// several versions.
class PlainCommit {
 public:
  PlainCommit(KnownRoutes& routes, const Drafts& drafts, const CommitSettings& settings)
      : routes_(routes), settings_(settings) {
    for (Draft* draft : drafts) {
      if (has_versions(*draft)) {
        versioned_.push_back(draft);
        continue;
      }
      const Route* route = routes.find(draft->event);
      if (route != nullptr && static_cast<int32_t>(draft->event.data.size()) <= route->data_bytes_max)
        known_.push_back({draft, route});
      else
        unknown_.push_back(draft);
    }
    deliveries_ = routed_deliveries(known_, settings.now);
  }

  pg::Batch publish() const {
    pg::Batch batch;
    if (!known_.empty()) batch.add(sql::publish_known, publish_known_params(known_, deliveries_, settings_));
    if (!unknown_.empty()) batch.add(sql::publish, publish_params(unknown_, settings_));
    if (!versioned_.empty()) batch.add(sql::publish_versions, publish_versions_params(versioned_, settings_));
    return batch;
  }

  Commit read(const std::vector<pg::Rows>& results) {
    Commit commit;
    auto result = results.begin();
    if (!known_.empty()) read_known(*result++, known_, std::move(deliveries_), routes_, commit);
    if (!unknown_.empty()) read_published(*result++, unknown_, settings_, routes_, commit);
    if (!versioned_.empty()) read_versions_published(*result, versioned_, settings_, commit);
    return commit;
  }

 private:
  KnownRoutes& routes_;
  const CommitSettings& settings_;
  RoutedDrafts known_;
  Drafts unknown_, versioned_;
  std::vector<model::CommittedDelivery> deliveries_;
};

Task<Commit> commit_plain(pg::Link& link, KnownRoutes& routes, Drafts drafts, CommitSettings settings) {
  PlainCommit plain(routes, drafts, settings);
  auto publish = plain.publish();
  base::reach("publish.before_begin");
  const auto results = co_await link.run(std::move(publish), settings.deadline);
  base::reach("publish.after_commit");
  co_return plain.read(results);
}

// The steps of a transaction with keys: who may go on, who came too late, who has nowhere to go.
class KeyedCommit {
 public:
  KeyedCommit(KnownRoutes& routes, const Drafts& drafts, const CommitSettings& settings)
      : routes_(routes), drafts_(drafts), settings_(settings), keys_(key_rows(drafts)) {}

  pg::Batch take() const {
    std::set<std::string_view> tenants;
    for (const Draft* draft : drafts_) tenants.insert(draft->event.tenant_id);
    pg::Batch batch;
    batch.with(sql::known_tenants, tenants);
    batch.add(sql::take_keys, take_keys_params(keys_));
    return batch;
  }

  void sort_out(const std::vector<pg::Rows>& taken) {
    std::unordered_set<std::string_view> known;
    for (size_t row = 0; row < taken[0].size(); ++row) known.insert(taken[0].get<std::string_view>(row, 0));
    std::set<std::pair<base::Uuid, std::string_view>> won;
    for (size_t row = 0; row < taken[1].size(); ++row)
      won.emplace(taken[1].get<base::Uuid>(row, 0), taken[1].get<std::string_view>(row, 1));
    for (auto& key : keys_) {
      key.is_taken = won.contains(std::pair(key.draft->id().uuid, key.kind));
      // Each statement has a snapshot of its own: a tenant that was made in between is there for the keys,
      // and a key that is kept without its event would answer every repetition for nothing.
      if (key.is_taken) known.insert(key.draft->event.tenant_id);
    }
    std::unordered_set<const Draft*> late;
    for (const auto& key : keys_)
      if (!key.is_taken && known.contains(key.draft->event.tenant_id)) late.insert(key.draft);
    for (Draft* draft : drafts_) {
      if (!known.contains(draft->event.tenant_id))
        commit_.answers.push_back(
            {draft, Refused{Refused::Reason::unknown_tenant, "there is no such tenant"}});
      else if (!late.contains(draft))
        winners_.push_back(draft);
    }
    for (Draft* draft : winners_) (has_versions(*draft) ? versioned_ : plain_).push_back(draft);
    for (const auto& key : keys_) {
      if (!late.contains(key.draft)) continue;
      (key.is_taken ? spare_ : lost_).push_back(key);
    }
  }

  pg::Batch read_and_publish() const {
    pg::Batch batch;
    if (!lost_.empty()) batch.add(sql::read_keys, read_keys_params(lost_));
    if (!spare_.empty()) batch.add(sql::release_keys, release_keys_params(spare_));
    if (!plain_.empty()) batch.add(sql::publish, publish_params(plain_, settings_));
    if (!versioned_.empty()) batch.add(sql::publish_versions, publish_versions_params(versioned_, settings_));
    return batch;
  }

  void read(const std::vector<pg::Rows>& results) {
    if (!lost_.empty()) answer_late(results.front());
    if (!versioned_.empty()) read_versions_published(results.back(), versioned_, settings_, commit_);
    const size_t published = results.size() - (versioned_.empty() ? 1 : 2);
    if (!plain_.empty()) read_published(results[published], plain_, settings_, routes_, commit_);
  }

  // What the winners were told, for those who will repeat it; keys of the refused are free again. What an
  // attempt of unknown outcome had committed was perhaps not there yet when the owners were made to look: its
  // keys were waited for, so now it is.
  pg::Batch keep() const {
    std::unordered_map<const Draft*, const PublishAnswer*> answers;
    for (const auto& answer : commit_.answers) answers.emplace(answer.draft, &answer.answer);
    KeyRows kept, refused;
    std::vector<std::string_view> texts;
    for (const auto& key : keys_) {
      if (std::find(winners_.begin(), winners_.end(), key.draft) == winners_.end()) continue;
      if (const auto* published = std::get_if<Published>(answers.at(key.draft))) {
        kept.push_back(key);
        texts.push_back(published->answer);
      } else {
        refused.push_back(key);
      }
    }
    pg::Batch batch;
    if (!kept.empty()) batch.add(sql::keep_answers, keep_answers_params(kept, texts));
    if (!refused.empty()) batch.add(sql::release_keys, release_keys_params(refused));
    if (!hollow_.empty()) batch.add(sql::free_hollow_keys, read_keys_params(hollow_));
    if (!own_.empty()) {
      const auto range = delivery_range_of(own_);
      batch.with(sql::log_unsure, range.first.uuid, range.last.uuid);
    }
    return batch;
  }

  Commit take_result() { return std::move(commit_); }

 private:
  void answer_late(const pg::Rows& rows) {
    enum Column : size_t { place, event_id, request_hash, answer };
    std::unordered_map<Draft*, PublishAnswer> answers;
    std::vector<bool> is_read(lost_.size());
    for (size_t row = 0; row < rows.size(); ++row) {
      const size_t index = static_cast<size_t>(rows.get<int32_t>(row, place) - 1);
      is_read[index] = true;
      Draft* draft = lost_[index].draft;
      if (rows.get<std::string_view>(row, answer).empty()) {
        hollow_.push_back(lost_[index]);
        continue;
      }
      const bool is_own = rows.get<base::Uuid>(row, event_id) == draft->id().uuid;
      if (is_own) own_.push_back(draft);
      const bool is_same = rows.get<pg::Bytes>(row, request_hash).view == draft->request_hash.view();
      if (is_same)  // unless its other key says otherwise
        answers.try_emplace(draft, Published{rows.get<std::string>(row, answer), !is_own});
      else
        answers.insert_or_assign(
            draft, Refused{Refused::Reason::conflict,
                           "the " + std::string(lost_[index].kind == "id" ? "event ID" : "Idempotency-Key") +
                               " was already used with different content"});
    }
    // Taken when we tried and gone when we looked: retention removed it in between.
    if (std::find(is_read.begin(), is_read.end(), false) != is_read.end())
      throw pg::Error(pg::Kind::retry, "an event key was removed while it was read");
    put_aside_hollow(answers);
    for (auto& [draft, late] : answers) commit_.answers.push_back({draft, std::move(late)});
  }

  // Their keys are free once this is committed; then they are published as if nobody had come before.
  void put_aside_hollow(const std::unordered_map<Draft*, PublishAnswer>& answered) {
    std::unordered_set<Draft*> aside;
    for (const auto& key : hollow_)
      if (!answered.contains(key.draft) && aside.insert(key.draft).second) commit_.stale.push_back(key.draft);
  }

  KnownRoutes& routes_;
  const Drafts& drafts_;
  const CommitSettings& settings_;
  KeyRows keys_;
  Drafts winners_, plain_, versioned_;  // the winners are of both kinds
  KeyRows lost_;                        // keys that belong to others
  KeyRows spare_;                       // keys won by drafts that lost their other one
  KeyRows hollow_;                      // keys kept without an answer: no event was written for them
  Drafts own_;                          // committed by an earlier attempt of theirs
  Commit commit_;
};

Task<Commit> write_keyed(pg::Transaction& transaction, KnownRoutes& routes, Drafts drafts,
                         CommitSettings settings) {
  KeyedCommit keyed(routes, drafts, settings);
  auto take = keyed.take();
  const auto taken = co_await transaction.run(std::move(take));
  keyed.sort_out(taken);
  auto publish = keyed.read_and_publish();
  if (!publish.empty()) {
    const auto results = co_await transaction.run(std::move(publish));
    keyed.read(results);
  }
  auto keep = keyed.keep();
  if (!keep.empty()) co_await transaction.run(std::move(keep));
  co_return keyed.take_result();
}

Task<Commit> write_plain(pg::Transaction& transaction, KnownRoutes& routes, Drafts drafts,
                         CommitSettings settings) {
  PlainCommit plain(routes, drafts, settings);
  auto publish = plain.publish();
  const auto results = co_await transaction.run(std::move(publish));
  co_return plain.read(results);
}

Task<Commit> commit_keyed(pg::Link& link, KnownRoutes& routes, Drafts drafts, CommitSettings settings) {
  base::reach("publish.before_begin");
  auto transaction = co_await link.begin(settings.deadline);
  auto task = write_keyed(transaction, routes, std::move(drafts), settings);
  auto commit = co_await task;
  base::reach("publish.before_commit");
  co_await transaction.commit();
  base::reach("publish.after_commit");
  co_return commit;
}

// A time-ordered id begins with its milliseconds.
int64_t day_of(model::EventId id) {
  constexpr int64_t kDayMilliseconds = 86'400'000;
  int64_t ms = 0;
  for (size_t i = 0; i < 6; ++i) ms = ms << 8 | id.uuid.bytes[i];
  return ms / kDayMilliseconds;
}

bool has_keys(const Drafts& drafts) {
  return std::any_of(drafts.begin(), drafts.end(), [](const Draft* draft) { return draft->event.has_key(); });
}

}  // namespace

model::DeliveryRange delivery_range_of(const Drafts& drafts) {
  const auto by_id = [](const Draft* a, const Draft* b) { return a->id() < b->id(); };
  const auto [first, last] = std::minmax_element(drafts.begin(), drafts.end(), by_id);
  return model::delivery_range((*first)->id(), (*last)->id());
}

Task<Commit> commit_drafts(pg::Link& link, KnownRoutes& routes, Drafts drafts, CommitSettings settings) {
  if (!link.is_up()) co_await link.wait_up(settings.deadline);
  routes.follow(link.connection_number());
  auto task = has_keys(drafts) ? commit_keyed(link, routes, std::move(drafts), settings)
                               : commit_plain(link, routes, std::move(drafts), settings);
  auto commit = co_await task;
  co_return commit;
}

Task<Commit> write_drafts(pg::Transaction& transaction, KnownRoutes& routes, Drafts drafts,
                          CommitSettings settings) {
  auto task = has_keys(drafts) ? write_keyed(transaction, routes, std::move(drafts), settings)
                               : write_plain(transaction, routes, std::move(drafts), settings);
  auto commit = co_await task;
  co_return commit;
}

// A check violation of no named constraint.
bool is_missing_partition(const pg::Error& error) {
  return error.sqlstate() == "23514" && error.constraint().empty();
}

Task<void> make_partitions(pg::Link& link, const Drafts& drafts) {
  std::map<int64_t, base::Uuid> days;
  for (const Draft* draft : drafts) days.emplace(day_of(draft->id()), draft->id().uuid);
  pg::Batch batch;
  batch.add(sql::limit_lock_wait);
  for (const auto& [day, id] : days) batch.with(sql::make_event_partition, id);
  try {
    co_await link.run(std::move(batch));
  } catch (const pg::Error& error) {
    telemetry::log_warn("event_partition_not_made").field("error", error.what());
  }
}

Task<Commit> commit_again(pg::Link& link, KnownRoutes& routes, Drafts drafts, CommitSettings settings) {
  const auto range = delivery_range_of(drafts);
  pg::Batch look(sql::recall, recall_params(drafts));
  look.with(sql::log_unsure, range.first.uuid, range.last.uuid);
  const auto results = co_await link.run(std::move(look), settings.deadline);
  std::unordered_map<base::Uuid, int64_t> there;
  for (size_t row = 0; row < results[0].size(); ++row)
    there.emplace(results[0].get<base::Uuid>(row, 0), results[0].get<int64_t>(row, 1));

  Commit commit;
  Drafts missing;
  for (Draft* draft : drafts) {
    const auto found = there.find(draft->id().uuid);
    if (found == there.end())
      missing.push_back(draft);
    else
      commit.answers.push_back({draft, draft->published(found->second)});
  }
  if (missing.empty()) co_return commit;

  settings.node_id = kNobody;
  auto task = commit_drafts(link, routes, std::move(missing), settings);
  auto rest = co_await task;
  for (auto& answer : rest.answers) commit.answers.push_back(std::move(answer));
  commit.stale = std::move(rest.stale);
  commit.has_wide = rest.has_wide;
  co_return commit;
}

bool is_unknown_tenant(const PublishAnswer& answer) {
  const auto* refused = std::get_if<Refused>(&answer);
  return refused != nullptr && refused->reason == Refused::Reason::unknown_tenant;
}

Task<void> create_tenants(pg::Link& link, const Drafts& drafts) {
  std::set<std::string_view> names;
  for (const Draft* draft : drafts) names.insert(draft->event.tenant_id);
  pg::Params params(names);
  co_await link.run_one(sql::create_tenants, std::move(params));
}

}  // namespace postrider::publish
