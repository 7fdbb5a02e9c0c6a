#include "postrider/publish/event_writer.hpp"

#include <algorithm>
#include <optional>

#include "postrider/pg/batch_commit.hpp"
#include "postrider/publish/commit.hpp"
#include "postrider/publish/keyed_commit.hpp"
#include "postrider/publish/unknown_commits.hpp"

namespace postrider::publish {

using runtime::Task;

struct EventWriter::State {
  pg::Link& link;
  model::IdSource& ids;
  Announcer announcer;
  EventWriterOptions options;
  UnknownCommits unknown = UnknownCommits(link);
  FanoutPlanCache plans = FanoutPlanCache();

  std::vector<std::unique_ptr<PendingEvent>> events = {};
  Announcement written = {};
  std::optional<model::DeliveryRange> range = {};
  bool has_created_tenants = false;  // since the last commit; one that is still unknown then was deleted

  PendingEvents all() const {
    PendingEvents pointers;
    for (const auto& pending : events) pointers.push_back(pending.get());
    return pointers;
  }
  void forget() {
    events.clear();
    written = {};
  }
};

EventWriter::EventWriter(pg::Link& link, model::IdSource& ids, model::Handoff& handoff,
                         const telemetry::Metrics& metrics, EventWriterOptions options)
    : state_(new State{link, ids, Announcer(handoff, Metrics(metrics)), options}) {}

EventWriter::~EventWriter() = default;

void EventWriter::on_committed(base::UniqueFunction<void(const std::vector<int>&)> callback) {
  state_->announcer.on_committed(std::move(callback));
}

void EventWriter::on_wide(base::UniqueFunction<void()> callback) {
  state_->announcer.on_wide(std::move(callback));
}

bool EventWriter::is_ready() const {
  return state_->ids.is_ready();
}

Task<std::vector<PublishResult>> EventWriter::write(pg::Transaction& transaction,
                                                    std::vector<NewEvent> events) {
  State& state = *state_;
  state.forget();
  state.range.reset();
  std::vector<PublishResult> results(events.size());
  std::vector<size_t> places;  // of state.events, among the events
  for (size_t place = 0; place < events.size(); ++place) {
    if (const auto errors = errors_of(events[place]); !errors.empty()) {
      results[place] = Rejected{Rejected::Reason::invalid, model::to_text(errors)};
      continue;
    }
    auto pending = std::make_unique<PendingEvent>();
    pending->event = std::move(events[place]);
    prepare(*pending, state.ids);
    state.events.push_back(std::move(pending));
    places.push_back(place);
  }
  PendingEvents left = state.all();
  if (left.empty()) co_return results;
  state.plans.follow(state.link.connection_number());  // the transaction's
  state.range = delivery_range_of(left);
  const CommitSettings settings{
      state.options.node_id, state.ids.now(), state.options.data_bytes_max, state.options.wide_endpoints, {}};
  while (!left.empty()) {
    auto split = split_followers(left);
    auto commit = co_await write_events(transaction, state.plans, split.leaders, settings);
    left = commit.stale;  // before their followers
    state.written.add(std::move(commit), split.leaders);
    const PendingEvents unresolved = resolve_followers(split.followers);
    left.insert(left.end(), unresolved.begin(), unresolved.end());
  }
  bool has_unknown_tenant = false;
  for (size_t i = 0; i < places.size(); ++i) {
    PublishResult& result = *state.events[i]->result;
    has_unknown_tenant |= is_unknown_tenant(result);
    results[places[i]] = std::move(result);
  }
  if (has_unknown_tenant && state.options.create_tenants && !state.has_created_tenants)
    throw pg::Error(pg::Kind::retry, "a tenant must be created first");
  co_return results;
}

void EventWriter::committed() {
  state_->has_created_tenants = false;
  state_->announcer.announce(std::move(state_->written));
  state_->forget();
}

void EventWriter::unknown() {
  state_->forget();
  if (state_->range) state_->unknown.add(*state_->range);
  state_->range.reset();
}

Task<void> EventWriter::stop() {
  co_await state_->unknown.stop();
}

Task<bool> EventWriter::repair(const pg::Error& error) {
  State& state = *state_;
  const PendingEvents events = state.all();
  if (events.empty()) co_return false;
  if (pg::is_missing_partition(error)) {
    co_await create_partitions(state.link, events);
    co_return true;
  }
  if (error.kind() != pg::Kind::retry || !state.options.create_tenants || state.has_created_tenants)
    co_return false;
  state.has_created_tenants = true;
  co_await create_tenants(state.link, events);
  co_return true;
}

}  // namespace postrider::publish
