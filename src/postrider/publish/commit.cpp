#include "postrider/publish/commit.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "postrider/base/fail_point.hpp"
#include "postrider/publish/keys.sql.hpp"
#include "postrider/publish/publish.sql.hpp"
#include "postrider/publish/recover.sql.hpp"
#include "postrider/publish/statements.hpp"

namespace postrider::publish {

namespace {

using runtime::Task;

constexpr model::NodeId kNobody{};

// One round trip: what is known to the routes, then what is not.
Task<Commit> commit_plain(pg::Link& link, KnownRoutes& routes, Drafts drafts, CommitSettings settings) {
  Commit commit;
  RoutedDrafts known;
  Drafts unknown;
  for (Draft* draft : drafts) {
    const Route* route = routes.find(draft->event);
    if (route != nullptr && static_cast<int32_t>(draft->event.data.size()) <= route->data_bytes_max)
      known.push_back({draft, route});
    else
      unknown.push_back(draft);
  }
  std::vector<model::CommittedDelivery> deliveries = routed_deliveries(known, settings.now);
  pg::Batch batch;
  if (!known.empty()) batch.add(sql::publish_known, publish_known_params(known, deliveries, settings));
  if (!unknown.empty()) batch.add(sql::publish, publish_params(unknown, settings));
  base::reach("publish.before_begin");
  const auto results = co_await link.run(std::move(batch), settings.deadline);
  base::reach("publish.after_commit");
  if (!known.empty()) read_known(results.front(), known, std::move(deliveries), routes, commit);
  if (!unknown.empty()) read_published(results.back(), unknown, settings, routes, commit);
  co_return commit;
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
    std::unordered_set<const Draft*> late;
    for (auto& key : keys_) {
      if (!known.contains(key.draft->event.tenant_id)) continue;
      key.is_taken = won.contains(std::pair(key.draft->id().uuid, key.kind));
      if (!key.is_taken) late.insert(key.draft);
    }
    for (Draft* draft : drafts_) {
      if (!known.contains(draft->event.tenant_id))
        commit_.answers.push_back(
            {draft, Refused{Refused::Reason::unknown_tenant, "there is no such tenant"}});
      else if (!late.contains(draft))
        winners_.push_back(draft);
    }
    for (const auto& key : keys_) {
      if (!late.contains(key.draft)) continue;
      (key.is_taken ? spare_ : lost_).push_back(key);
    }
  }

  pg::Batch read_and_publish() const {
    pg::Batch batch;
    if (!lost_.empty()) batch.add(sql::read_keys, read_keys_params(lost_));
    if (!spare_.empty()) batch.add(sql::release_keys, release_keys_params(spare_));
    if (!winners_.empty()) batch.add(sql::publish, publish_params(winners_, settings_));
    return batch;
  }

  void read(const std::vector<pg::Rows>& results) {
    if (!lost_.empty()) answer_late(results.front());
    if (!winners_.empty()) read_published(results.back(), winners_, settings_, routes_, commit_);
  }

  // What the winners were told, for those who will repeat it; keys of the refused are free again.
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
      const bool is_own = rows.get<base::Uuid>(row, event_id) == draft->id().uuid;
      const bool is_same = rows.get<pg::Bytes>(row, request_hash).view == draft->request_hash.view();
      if (is_same)  // unless its other key says otherwise
        answers.try_emplace(draft, Published{rows.get<std::string>(row, answer), !is_own});
      else
        answers.insert_or_assign(
            draft, Refused{Refused::Reason::conflict,
                           "the " + std::string(lost_[index].kind == "id" ? "id" : "Idempotency-Key") +
                               " was used before with other content"});
    }
    // Taken when we tried and gone when we looked: retention removed it in between.
    if (std::find(is_read.begin(), is_read.end(), false) != is_read.end())
      throw pg::Error(pg::Kind::retry, "an event key was removed while it was read");
    for (auto& [draft, late] : answers) commit_.answers.push_back({draft, std::move(late)});
  }

  KnownRoutes& routes_;
  const Drafts& drafts_;
  const CommitSettings& settings_;
  KeyRows keys_;
  Drafts winners_;
  KeyRows lost_;   // keys that belong to others
  KeyRows spare_;  // keys won by drafts that lost their other one
  Commit commit_;
};

Task<Commit> commit_keyed(pg::Link& link, KnownRoutes& routes, Drafts drafts, CommitSettings settings) {
  KeyedCommit keyed(routes, drafts, settings);
  base::reach("publish.before_begin");
  auto transaction = co_await link.begin(settings.deadline);
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
  base::reach("publish.before_commit");
  co_await transaction.commit();
  base::reach("publish.after_commit");
  co_return keyed.take_result();
}

}  // namespace

model::DeliveryRange delivery_range_of(const Drafts& drafts) {
  return model::delivery_range(drafts.front()->id(), drafts.back()->id());
}

Task<Commit> commit_drafts(pg::Link& link, KnownRoutes& routes, Drafts drafts, CommitSettings settings) {
  const bool has_keys =
      std::any_of(drafts.begin(), drafts.end(), [](const Draft* draft) { return draft->event.has_key(); });
  auto task = has_keys ? commit_keyed(link, routes, std::move(drafts), settings)
                       : commit_plain(link, routes, std::move(drafts), settings);
  auto commit = co_await task;
  co_return commit;
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

}  // namespace postrider::publish
