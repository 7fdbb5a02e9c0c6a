#include "postrider/publish/publisher.hpp"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "postrider/base/fail_point.hpp"
#include "postrider/pg/batch_commit.hpp"
#include "postrider/publish/commit.hpp"
#include "postrider/publish/keyed_commit.hpp"
#include "postrider/publish/unknown_commits.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::publish {

namespace {

using runtime::Task;
using std::chrono::milliseconds;

// A repair creates partitions. It is repeated until the deadline, since the event is not to blame.
constexpr pg::CommitPolicy kPolicy{.pauses = {.min = milliseconds(5), .max = milliseconds(250)},
                                   .repairs_max = std::numeric_limits<int>::max()};
constexpr size_t kFanOutsRemembered = 10'000;

// The caller of publish_all(), which waits for the results of all its events.
struct Waiter {
  std::vector<PublishResult> results;
  size_t missing = 0;
  runtime::OneShot<bool> done;
};

struct WaitingEvent {
  std::unique_ptr<PendingEvent> pending;
  Waiter* waiter;
  size_t place;
  base::SteadyTime came;
};

}  // namespace

struct Publisher::State {
  State(runtime::Loop& loop_, pg::Link& link_, model::IdSource& ids_, model::Handoff& handoff,
        const telemetry::Metrics& metrics, PublisherOptions options_)
      : loop(loop_),
        link(link_),
        ids(ids_),
        announcer(handoff, Metrics(metrics)),
        batch_size(Metrics(metrics).batch_items),
        options(options_),
        patience(options.give_up_after),
        batcher(options.limits, [this](std::vector<WaitingEvent> batch) { return flush(std::move(batch)); }),
        commit(loop_, kPolicy),
        unknown(link_) {}

  runtime::Loop& loop;
  pg::Link& link;
  model::IdSource& ids;
  Announcer announcer;
  telemetry::Histogram batch_size;
  PublisherOptions options;
  pg::Patience patience;
  pg::Batcher<WaitingEvent> batcher;
  pg::BatchCommit<PendingEvent*> commit;
  FanoutPlanCache plans;
  std::unordered_map<std::string, size_t> fan_outs;  // deliveries of the last event of a tenant
  UnknownCommits unknown;                            // no longer retried

  class Flush;

  std::optional<Rejected> accept(std::vector<NewEvent> events, Waiter& waiter);
  Task<void> flush(std::vector<WaitingEvent> batch);
  void learn(const std::vector<WaitingEvent>& batch);
  void finish(Announcement committed, std::vector<WaitingEvent> batch);
};

// Commits one batch of the batcher, in as many transactions as it takes.
class Publisher::State::Flush final : public pg::BatchWriter<PendingEvent*> {
 public:
  explicit Flush(State& publisher) : publisher_(publisher) {}

  // Returns when each event has its result.
  Task<void> run(PendingEvents events, base::SteadyTime deadline);
  void give_up(const PendingEvents& events, std::string_view why);
  Announcement take_committed() { return std::move(committed_); }

 private:
  Task<void> write(Items events, pg::CommitAttempt attempt) override;
  Task<void> reject(PendingEvent* const& pending, const pg::Error& error) override;
  void give_up(Items events, const pg::Error& error, pg::CommitAttempt attempt) override;
  Task<pg::Repair> repair(Items events, const pg::Error& error) override;
  Task<void> create_missing_tenants(PendingEvents events, base::SteadyTime deadline);

  State& publisher_;
  Announcement committed_;
  PendingEvents stale_;                  // to be committed once more (see Commit)
  bool may_stale_be_committed_ = false;  // by an earlier attempt, whose result is unknown
};

// No value if the events were accepted and the waiter waits for `missing` of them; otherwise the rejection.
std::optional<Rejected> Publisher::State::accept(std::vector<NewEvent> events, Waiter& waiter) {
  if (!ids.is_ready()) return Rejected{Rejected::Reason::unavailable, "this node is still starting"};
  size_t bytes = 0;
  for (const auto& event : events) bytes += event.data_bytes();
  if (!batcher.has_room(events.size(), bytes))
    return Rejected{Rejected::Reason::overloaded, "too many events are waiting to be written"};
  const auto now = base::BootClock::now();
  waiter.results.resize(events.size());
  for (size_t place = 0; place < events.size(); ++place) {
    if (const auto errors = errors_of(events[place]); !errors.empty()) {
      waiter.results[place] = Rejected{Rejected::Reason::invalid, model::to_text(errors)};
      continue;
    }
    auto pending = std::make_unique<PendingEvent>();
    pending->event = std::move(events[place]);
    if (options.rates != nullptr && !options.rates->try_take(pending->event.tenant_id, now)) {
      waiter.results[place] =
          Rejected{Rejected::Reason::too_fast, "the publish rate limit of this tenant is exceeded"};
      continue;
    }
    const auto seen = fan_outs.find(pending->event.tenant_id);
    const pg::BatchWeight weight{1 + (seen == fan_outs.end() ? 1 : seen->second),
                                 pending->event.data_bytes()};
    batcher.add({std::move(pending), &waiter, place, now}, weight);
    ++waiter.missing;
  }
  batcher.start();
  return std::nullopt;
}

Task<void> Publisher::State::flush(std::vector<WaitingEvent> batch) {
  batch_size.observe(static_cast<double>(batch.size()));
  Flush flush(*this);
  PendingEvents events;
  for (auto& waiting : batch) {
    prepare(*waiting.pending, ids);
    events.push_back(waiting.pending.get());
  }
  if (const auto deadline = patience.deadline(batch.front().came, base::BootClock::now())) {
    const pg::AnswerDeadline answer(link, *deadline);
    co_await flush.run(std::move(events), *deadline);
  } else {
    flush.give_up(events, "no time is left after a batch that failed");
  }
  // Sending the responses of a large batch takes a while; meanwhile the next batch is already in progress.
  loop.post([this, committed = flush.take_committed(), done = std::move(batch)]() mutable {
    finish(std::move(committed), std::move(done));
  });
}

Task<void> Publisher::State::Flush::run(PendingEvents events, base::SteadyTime deadline) {
  while (!events.empty()) {
    auto split = split_followers(events);
    const pg::CommitAttempt first{.deadline = deadline, .may_be_committed = may_stale_be_committed_};
    co_await publisher_.commit.run(*this, split.leaders, first);
    if (publisher_.options.create_tenants) co_await create_missing_tenants(split.leaders, deadline);
    events = resolve_followers(split.followers);
    events.insert(events.end(), stale_.begin(), stale_.end());
    stale_.clear();
    std::sort(events.begin(), events.end(),
              [](PendingEvent* a, PendingEvent* b) { return a->id() < b->id(); });
  }
}

Task<void> Publisher::State::Flush::write(Items items, pg::CommitAttempt attempt) {
  const PublisherOptions& chosen = publisher_.options;
  const CommitSettings settings{chosen.node_id, publisher_.ids.now(), chosen.data_bytes_max,
                                chosen.wide_endpoints, *attempt.deadline};
  const PendingEvents events(items.begin(), items.end());
  auto task = attempt.may_be_committed ? commit_again(publisher_.link, publisher_.plans, events, settings)
                                       : commit_events(publisher_.link, publisher_.plans, events, settings);
  auto committed = co_await task;
  may_stale_be_committed_ |= attempt.may_be_committed && !committed.stale.empty();
  stale_.insert(stale_.end(), committed.stale.begin(), committed.stale.end());
  committed_.add(std::move(committed), events);
  publisher_.patience.succeeded();
}

Task<void> Publisher::State::Flush::reject(PendingEvent* const& pending, const pg::Error&) {
  pending->result = Rejected{Rejected::Reason::invalid, "the event contains values that cannot be stored"};
  co_return;
}

Task<pg::Repair> Publisher::State::Flush::repair(Items items, const pg::Error& error) {
  if (!pg::is_missing_partition(error)) co_return pg::Repair::none;
  const PendingEvents events(items.begin(), items.end());
  co_await create_partitions(publisher_.link, events);
  co_return pg::Repair::done;
}

// Tenants are created in a transaction of their own: an event whose tenant was unknown is then published
// again.
Task<void> Publisher::State::Flush::create_missing_tenants(PendingEvents events, base::SteadyTime deadline) {
  std::erase_if(events, [](const PendingEvent* pending) {
    return !pending->result || !is_unknown_tenant(*pending->result);
  });
  if (events.empty()) co_return;
  try {
    co_await create_tenants(publisher_.link, events);
  } catch (const pg::Error& error) {
    give_up(events, error.what());
    co_return;
  }
  const pg::CommitAttempt first{.deadline = deadline};
  co_await publisher_.commit.run(*this, events, first);
}

void Publisher::State::Flush::give_up(Items items, const pg::Error& error, pg::CommitAttempt attempt) {
  const PendingEvents events(items.begin(), items.end());
  give_up(events, error.what());
  if (attempt.may_be_committed) publisher_.unknown.add(delivery_range_of(events));
}

void Publisher::State::Flush::give_up(const PendingEvents& events, std::string_view why) {
  telemetry::log_error("publish_failed").field("events", events.size()).field("error", why);
  publisher_.patience.gave_up();
  for (PendingEvent* pending : events)
    pending->result = Rejected{Rejected::Reason::unavailable, "the database is unavailable"};
}

// Remembers what the tenants' rows said, for the next events.
void Publisher::State::learn(const std::vector<WaitingEvent>& batch) {
  if (fan_outs.size() > kFanOutsRemembered) fan_outs.clear();
  const auto now = base::BootClock::now();
  for (const auto& waiting : batch) {
    const PendingEvent& pending = *waiting.pending;
    if (pending.rows > 1) fan_outs[pending.event.tenant_id] = pending.rows;
    if (pending.is_tenant_known && options.rates != nullptr)
      options.rates->set_rate(pending.event.tenant_id, pending.publish_rate_per_second, now);
  }
}

void Publisher::State::finish(Announcement committed, std::vector<WaitingEvent> batch) {
  learn(batch);
  announcer.announce(std::move(committed));
  base::reach("publish.before_answer");
  for (auto& waiting : batch) {
    waiting.waiter->results[waiting.place] = std::move(*waiting.pending->result);
    if (--waiting.waiter->missing == 0) waiting.waiter->done.set(true);
  }
}

Publisher::Publisher(runtime::Loop& loop, pg::Link& link, model::IdSource& ids, model::Handoff& handoff,
                     const telemetry::Metrics& metrics, PublisherOptions options)
    : state_(std::make_unique<State>(loop, link, ids, handoff, metrics, options)) {}
Publisher::~Publisher() = default;

void Publisher::on_committed(base::UniqueFunction<void(const std::vector<int>&)> callback) {
  state_->announcer.on_committed(std::move(callback));
}

void Publisher::on_wide(base::UniqueFunction<void()> callback) {
  state_->announcer.on_wide(std::move(callback));
}

Task<std::vector<PublishResult>> Publisher::publish_all(std::vector<NewEvent> events) {
  Waiter waiter;
  const size_t count = events.size();
  if (const auto rejected = state_->accept(std::move(events), waiter))
    co_return std::vector<PublishResult>(count, *rejected);
  if (waiter.missing > 0) co_await waiter.done;
  co_return std::move(waiter.results);
}

Task<PublishResult> Publisher::publish(NewEvent event) {
  std::vector<NewEvent> events;
  events.push_back(std::move(event));
  auto results = co_await publish_all(std::move(events));
  co_return std::move(results.front());
}

Task<void> Publisher::stop() {
  co_await state_->batcher.drain();
  runtime::OneShot<bool> answered;
  state_->loop.post([&answered] { answered.set(true); });  // after the results
  co_await answered;
  co_await state_->unknown.stop();
}

}  // namespace postrider::publish
