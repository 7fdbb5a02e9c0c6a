#include "postrider/publish/event_writer.hpp"

#include <algorithm>
#include <optional>

#include "postrider/publish/announce.hpp"
#include "postrider/publish/followers.hpp"
#include "postrider/publish/recover.sql.hpp"

namespace postrider::publish {

using runtime::Task;

struct EventWriter::State {
  pg::Link& link;
  model::IdSource& ids;
  Announcer announcer;
  EventWriterOptions options;
  KnownRoutes routes = KnownRoutes();

  std::vector<std::unique_ptr<Draft>> drafts = {};
  Announcement written = {};
  std::optional<model::DeliveryRange> range = {};
  bool has_made_tenants = false;  // since the last commit; one that is still unknown then was deleted

  Drafts all() const {
    Drafts pointers;
    for (const auto& draft : drafts) pointers.push_back(draft.get());
    return pointers;
  }
  void forget() {
    drafts.clear();
    written = {};
  }
};

EventWriter::EventWriter(pg::Link& link, model::IdSource& ids, model::HandOver& hand_over,
                         const telemetry::Metrics& metrics, EventWriterOptions options)
    : state_(new State{link, ids, Announcer(hand_over, metrics), options}) {}

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

Task<std::vector<PublishAnswer>> EventWriter::write(pg::Transaction& transaction,
                                                    std::vector<NewEvent> events) {
  State& state = *state_;
  state.forget();
  std::vector<PublishAnswer> answers(events.size());
  std::vector<size_t> places;  // of the drafts, among the events
  for (size_t place = 0; place < events.size(); ++place) {
    if (const auto faults = faults_of(events[place]); !faults.empty()) {
      answers[place] = Refused{Refused::Reason::unacceptable, model::to_text(faults)};
      continue;
    }
    auto draft = std::make_unique<Draft>();
    draft->event = std::move(events[place]);
    prepare(*draft, state.ids);
    state.drafts.push_back(std::move(draft));
    places.push_back(place);
  }
  Drafts pending = state.all();
  if (pending.empty()) co_return answers;
  state.routes.follow(state.link.connection_number());  // the transaction's
  state.range = delivery_range_of(pending);
  const CommitSettings settings{
      state.options.node_id, state.ids.now(), state.options.data_bytes_max, state.options.wide_endpoints, {}};
  while (!pending.empty()) {
    auto split = split_followers(pending);
    auto task = write_drafts(transaction, state.routes, split.leaders, settings);
    auto commit = co_await task;
    pending = commit.stale;  // ahead of who follows them
    state.written.add(std::move(commit), split.leaders);
    const Drafts left = answer_followers(split.followers);
    pending.insert(pending.end(), left.begin(), left.end());
  }
  bool has_unknown = false;
  for (size_t i = 0; i < places.size(); ++i) {
    PublishAnswer& answer = *state.drafts[i]->answer;
    has_unknown |= is_unknown_tenant(answer);
    answers[places[i]] = std::move(answer);
  }
  if (has_unknown && state.options.create_tenants && !state.has_made_tenants)
    throw pg::Error(pg::Kind::retry, "a tenant is to be made first");
  co_return answers;
}

void EventWriter::committed() {
  state_->has_made_tenants = false;
  state_->announcer.announce(std::move(state_->written));
  state_->forget();
}

void EventWriter::rolled_back() {
  state_->forget();
}

Task<void> EventWriter::unsure() {
  state_->forget();
  if (!state_->range) co_return;
  pg::Params params(state_->range->first.uuid, state_->range->last.uuid);
  co_await state_->link.run_one(sql::log_unsure, std::move(params));
  state_->range.reset();
}

Task<bool> EventWriter::repair(const pg::Error& error) {
  State& state = *state_;
  const Drafts drafts = state.all();
  if (drafts.empty()) co_return false;
  if (is_missing_partition(error)) {
    auto made = make_partitions(state.link, drafts);
    co_await made;
    co_return true;
  }
  if (error.kind() != pg::Kind::retry || !state.options.create_tenants || state.has_made_tenants)
    co_return false;
  state.has_made_tenants = true;
  auto made = create_tenants(state.link, drafts);
  co_await made;
  co_return true;
}

}  // namespace postrider::publish
