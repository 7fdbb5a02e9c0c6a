#include "postrider/publish/commit.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>

#include "postrider/base/fail_point.hpp"
#include "postrider/model/id_time.hpp"
#include "postrider/publish/keyed_commit.hpp"
#include "postrider/publish/statements.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::publish {

namespace {

using runtime::Task;

constexpr model::NodeId kNoNode{};

// Events without keys, in one round trip: those with a plan, those without, and those in several versions.
class PlainCommit {
 public:
  PlainCommit(FanoutPlanCache& plans, const PendingEvents& events, const CommitSettings& settings)
      : plans_(plans), settings_(settings) {
    for (PendingEvent* pending : events) {
      if (pending->has_versions())
        versioned_.push_back(pending);
      else if (!planned_.add(pending, plans))
        unplanned_.push_back(pending);
    }
  }

  pg::Batch publish() {
    pg::Batch batch;
    if (!planned_.empty()) known_published_ = planned_.add_to(batch, settings_);
    if (!unplanned_.empty()) published_ = add_publish(batch, unplanned_, settings_);
    if (!versioned_.empty()) versions_published_ = add_publish_versions(batch, versioned_, settings_);
    return batch;
  }

  Commit read(pg::Results results) {
    Commit commit;
    if (known_published_) planned_.read(results.take(*known_published_), plans_, commit);
    if (published_) read_published(results.take(*published_), unplanned_, settings_, plans_, commit);
    if (versions_published_)
      read_versions_published(results.take(*versions_published_), versioned_, settings_, commit);
    return commit;
  }

 private:
  FanoutPlanCache& plans_;
  const CommitSettings& settings_;
  PlannedEvents planned_;
  PendingEvents unplanned_, versioned_;
  std::optional<pg::Pending<sql::publish_known>> known_published_;
  std::optional<pg::Pending<sql::publish>> published_;
  std::optional<pg::Pending<sql::publish_versions>> versions_published_;
};

Task<Commit> commit_plain(pg::Link& link, FanoutPlanCache& plans, PendingEvents events,
                          CommitSettings settings) {
  PlainCommit plain(plans, events, settings);
  auto publish = plain.publish();
  base::reach("publish.before_begin");
  pg::Results results = co_await link.run(std::move(publish), settings.deadline);
  base::reach("publish.after_commit");
  co_return plain.read(std::move(results));
}

Task<Commit> write_plain(pg::Transaction& transaction, FanoutPlanCache& plans, PendingEvents events,
                         CommitSettings settings) {
  PlainCommit plain(plans, events, settings);
  auto publish = plain.publish();
  pg::Results results = co_await transaction.run(std::move(publish));
  co_return plain.read(std::move(results));
}

Task<Commit> commit_keyed(pg::Link& link, FanoutPlanCache& plans, PendingEvents events,
                          CommitSettings settings) {
  base::reach("publish.before_begin");
  auto transaction = co_await link.begin(settings.deadline);
  auto commit = co_await write_keyed(transaction, plans, std::move(events), settings);
  base::reach("publish.before_commit");
  co_await transaction.commit();
  base::reach("publish.after_commit");
  co_return commit;
}

bool has_keys(const PendingEvents& events) {
  return std::any_of(events.begin(), events.end(),
                     [](const PendingEvent* pending) { return pending->event.has_key(); });
}

}  // namespace

Task<Commit> commit_events(pg::Link& link, FanoutPlanCache& plans, PendingEvents events,
                           CommitSettings settings) {
  if (!link.is_up()) co_await link.wait_up(settings.deadline);
  plans.follow(link.connection_number());
  if (has_keys(events)) co_return co_await commit_keyed(link, plans, std::move(events), settings);
  co_return co_await commit_plain(link, plans, std::move(events), settings);
}

Task<Commit> write_events(pg::Transaction& transaction, FanoutPlanCache& plans, PendingEvents events,
                          CommitSettings settings) {
  if (has_keys(events)) return write_keyed(transaction, plans, std::move(events), settings);
  return write_plain(transaction, plans, std::move(events), settings);
}

Task<void> create_partitions(pg::Link& link, const PendingEvents& events) {
  std::map<std::chrono::sys_days, base::Uuid> days;
  for (const PendingEvent* pending : events)
    days.emplace(model::day_of(pending->id().uuid), pending->id().uuid);
  pg::Batch batch;
  batch.add(sql::limit_lock_wait{});
  for (const auto& [day, id] : days) batch.add(sql::make_event_partition{.id = id});
  try {
    co_await link.run(std::move(batch));
  } catch (const pg::Error& error) {
    telemetry::log_warn("event_partition_not_made").field("error", error.what());
  }
}

Task<Commit> commit_again(pg::Link& link, FanoutPlanCache& plans, PendingEvents events,
                          CommitSettings settings) {
  const auto range = delivery_range_of(events);
  pg::Batch look;
  const auto recalled = add_recall(look, events);
  look.add(sql::log_unknown{.first_id = range.first.uuid, .last_id = range.last.uuid});
  pg::Results results = co_await link.run(std::move(look), settings.deadline);
  const auto found = results.take(recalled);
  std::unordered_map<base::Uuid, int64_t> deliveries;
  for (const auto& row : found) deliveries.emplace(row.id, row.deliveries);

  Commit commit;
  PendingEvents missing;
  for (PendingEvent* pending : events) {
    const auto committed = deliveries.find(pending->id().uuid);
    if (committed == deliveries.end())
      missing.push_back(pending);
    else
      commit.results.push_back({pending, pending->published(committed->second)});
  }
  if (missing.empty()) co_return commit;

  settings.node_id = kNoNode;
  auto rest = co_await commit_events(link, plans, std::move(missing), settings);
  for (auto& result : rest.results) commit.results.push_back(std::move(result));
  commit.stale = std::move(rest.stale);
  commit.has_wide = rest.has_wide;
  co_return commit;
}

Rejected unknown_tenant() {
  return {Rejected::Reason::unknown_tenant, "there is no such tenant"};
}

bool is_unknown_tenant(const PublishResult& result) {
  const auto* rejected = std::get_if<Rejected>(&result);
  return rejected != nullptr && rejected->reason == Rejected::Reason::unknown_tenant;
}

Task<void> create_tenants(pg::Link& link, const PendingEvents& events) {
  std::set<std::string_view> tenants;
  for (const PendingEvent* pending : events) tenants.insert(pending->event.tenant_id);
  co_await link.run(sql::create_tenants{.tenants = tenants});
}

void Announcement::add(Commit commit, const PendingEvents& events_written) {
  CHECK(commit.results.size() + commit.stale.size() == events_written.size());
  for (auto& [pending, result] : commit.results) {
    const auto* published = std::get_if<Published>(&result);
    if (published != nullptr && !published->is_repeat) ++events;
    pending->result = std::move(result);
  }
  has_wide |= commit.has_wide;
  deliveries.insert(deliveries.end(), std::make_move_iterator(commit.deliveries.begin()),
                    std::make_move_iterator(commit.deliveries.end()));
}

void Announcer::announce(Announcement committed) {
  events_created_.add(static_cast<double>(committed.events));
  std::vector<int> buckets;
  for (const auto& delivery : committed.deliveries) buckets.push_back(delivery.bucket);
  std::sort(buckets.begin(), buckets.end());
  buckets.erase(std::unique(buckets.begin(), buckets.end()), buckets.end());
  if (!committed.deliveries.empty()) {
    handoff_.offer(std::move(committed.deliveries));
    if (on_committed_) on_committed_(buckets);
  }
  if (committed.has_wide && on_wide_) on_wide_();
}

}  // namespace postrider::publish
