#include "postrider/publish/publisher.hpp"

#include <algorithm>
#include <random>
#include <unordered_map>
#include <unordered_set>

#include "postrider/base/fail_point.hpp"
#include "postrider/publish/announce.hpp"
#include "postrider/publish/commit.hpp"
#include "postrider/publish/followers.hpp"
#include "postrider/publish/patience.hpp"
#include "postrider/publish/recover.sql.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::publish {

namespace {

using runtime::Task;
using std::chrono::milliseconds;

constexpr milliseconds kPauseMin{5}, kPauseMax{250};
constexpr milliseconds kUnsurePause{250};
constexpr size_t kFanOutsRemembered = 10'000;

// Whoever waits for the answers to events that came together.
struct Waiter {
  std::vector<PublishAnswer> answers;
  size_t missing = 0;
  runtime::OneShot<bool> done;
};

struct WaitingDraft {
  std::unique_ptr<Draft> draft;
  Waiter* waiter;
  size_t place;
  base::SteadyTime came;
};

milliseconds jittered(milliseconds pause) {
  static thread_local std::minstd_rand random{std::random_device{}()};
  return pause / 2 + milliseconds(random() % static_cast<unsigned>(pause.count()));
}

}  // namespace

struct Publisher::State {
  State(runtime::Loop& loop_, pg::Link& link_, model::IdSource& ids_, model::HandOver& hand_over_,
        const telemetry::Metrics& metrics_, PublisherOptions options_)
      : loop(loop_),
        link(link_),
        ids(ids_),
        announcer(hand_over_, metrics_),
        batch_size(metrics_.batch_size.at("publish")),
        options(options_),
        patience(options.give_up_after),
        batcher(options.limits, [this](std::vector<WaitingDraft> batch) { return flush(std::move(batch)); }),
        pause(loop_),
        unsure_pause(loop_) {}

  runtime::Loop& loop;
  pg::Link& link;
  model::IdSource& ids;
  Announcer announcer;
  telemetry::Histogram batch_size;
  PublisherOptions options;
  Patience patience;
  Batcher<WaitingDraft> batcher;
  runtime::Wakeup pause;  // between tries of the one flush that runs
  KnownRoutes routes;
  std::unordered_map<std::string, size_t> fan_outs;  // deliveries of the last event of a tenant
  std::vector<model::DeliveryRange> unsure;          // given up on; may have been committed
  runtime::Wakeup unsure_pause;
  runtime::TaskGroup background;
  bool is_stopping = false;

  // What a flush has committed so far, and what was learned on the way.
  struct Flush {
    base::SteadyTime deadline;
    Announcement committed;
    Drafts stale;                  // to be committed once more (see Commit)
    bool is_stale_unsure = false;  // an earlier attempt may have committed them after all
    bool has_made_tenants = false;
  };

  std::optional<Refused> take_on(std::vector<NewEvent> events, Waiter& waiter);
  Task<void> flush(std::vector<WaitingDraft> batch);
  Task<void> commit(Flush& flush, Drafts drafts, bool is_repeat);
  Task<std::optional<pg::Error>> try_commit(Flush& flush, Drafts drafts, bool is_repeat);
  Task<void> commit_halves(Flush& flush, Drafts drafts, bool is_repeat);
  Task<void> make_tenants(Flush& flush, Drafts drafts);
  Task<void> wait(milliseconds& delay, base::SteadyTime deadline);
  void give_up(const Drafts& drafts, bool is_repeat, std::string_view why);
  void refuse(const Drafts& drafts, const Refused& refused);
  Task<void> log_unsure();
  void learn(const std::vector<WaitingDraft>& batch);
  void finish(Flush flush, std::vector<WaitingDraft> batch);
  CommitSettings settings(const Flush& flush) const;
};

// Nothing, when all were taken on and the waiter waits for `missing` of them; or why none was.
std::optional<Refused> Publisher::State::take_on(std::vector<NewEvent> events, Waiter& waiter) {
  if (!ids.is_ready()) return Refused{Refused::Reason::unavailable, "this node is still starting"};
  size_t bytes = 0;
  for (const auto& event : events) bytes += event.data_bytes();
  if (!batcher.has_room(events.size(), bytes))
    return Refused{Refused::Reason::overloaded, "too many events are waiting to be written"};
  const auto now = base::BootClock::now();
  waiter.answers.resize(events.size());
  for (size_t place = 0; place < events.size(); ++place) {
    if (const auto faults = faults_of(events[place]); !faults.empty()) {
      waiter.answers[place] = Refused{Refused::Reason::unacceptable, model::to_text(faults)};
      continue;
    }
    auto draft = std::make_unique<Draft>();
    draft->event = std::move(events[place]);
    if (options.rates != nullptr && !options.rates->try_take(draft->event.tenant_id, now)) {
      waiter.answers[place] =
          Refused{Refused::Reason::too_fast, "the publish rate limit of this tenant is exceeded"};
      continue;
    }
    const auto seen = fan_outs.find(draft->event.tenant_id);
    const BatchWeight weight{1 + (seen == fan_outs.end() ? 1 : seen->second), draft->event.data_bytes()};
    batcher.add({std::move(draft), &waiter, place, now}, weight);
    ++waiter.missing;
  }
  batcher.start();
  return std::nullopt;
}

CommitSettings Publisher::State::settings(const Flush& flush) const {
  return {options.node_id, ids.now(), options.data_bytes_max, options.wide_endpoints, flush.deadline};
}

Task<void> Publisher::State::flush(std::vector<WaitingDraft> batch) {
  batch_size.observe(static_cast<double>(batch.size()));
  Flush flush;
  Drafts pending;
  for (auto& waiting : batch) {
    prepare(*waiting.draft, ids);
    pending.push_back(waiting.draft.get());
  }
  if (const auto deadline = patience.deadline(batch.front().came, base::BootClock::now())) {
    flush.deadline = *deadline;
  } else {
    give_up(pending, false, "no time was left after a batch that failed");
    pending.clear();
  }
  while (!pending.empty()) {
    auto split = split_followers(pending);
    auto task = commit(flush, split.leaders, flush.is_stale_unsure);
    co_await task;
    pending = answer_followers(split.followers);
    pending.insert(pending.end(), flush.stale.begin(), flush.stale.end());
    flush.stale.clear();
    std::sort(pending.begin(), pending.end(), [](Draft* a, Draft* b) { return a->id() < b->id(); });
  }
  // Answering takes a while for a large batch; meanwhile the next one is already on its way.
  loop.post([this, done = std::move(flush), answered = std::move(batch)]() mutable {
    finish(std::move(done), std::move(answered));
  });
}

Task<void> Publisher::State::commit(Flush& flush, Drafts drafts, bool is_repeat) {
  milliseconds delay = kPauseMin;
  while (true) {
    auto attempt = try_commit(flush, drafts, is_repeat);
    const auto error = co_await attempt;
    if (!error) break;
    const bool is_over = base::BootClock::now() >= flush.deadline;
    if (error->kind() == pg::Kind::unknown) is_repeat = true;
    if (error->kind() == pg::Kind::other || is_over) {
      give_up(drafts, is_repeat, error->what());
      co_return;
    }
    if (is_missing_partition(*error)) {
      auto task = make_partitions(link, drafts);
      co_await task;
    } else if (error->kind() == pg::Kind::item && !(is_repeat && error->sqlstate() == "23505")) {
      auto task = commit_halves(flush, drafts, is_repeat);
      co_await task;
      co_return;
    }
    auto task = wait(delay, flush.deadline);
    co_await task;
  }
  if (!options.create_tenants || flush.has_made_tenants) co_return;
  std::erase_if(drafts,
                [](const Draft* draft) { return !draft->answer || !is_unknown_tenant(*draft->answer); });
  if (drafts.empty()) co_return;
  auto task = make_tenants(flush, drafts);
  co_await task;
}

// Answers the drafts and adds to the flush, or says why not.
Task<std::optional<pg::Error>> Publisher::State::try_commit(Flush& flush, Drafts drafts, bool is_repeat) {
  try {
    auto task = is_repeat ? commit_again(link, routes, drafts, settings(flush))
                          : commit_drafts(link, routes, drafts, settings(flush));
    auto committed = co_await task;
    flush.is_stale_unsure |= is_repeat && !committed.stale.empty();
    flush.stale.insert(flush.stale.end(), committed.stale.begin(), committed.stale.end());
    flush.committed.add(std::move(committed), drafts);
    patience.succeeded();
  } catch (const pg::Error& error) {
    co_return error;
  }
  co_return std::nullopt;
}

// One of the drafts is at fault: it is found by halving, and the others are committed.
Task<void> Publisher::State::commit_halves(Flush& flush, Drafts drafts, bool is_repeat) {
  if (drafts.size() == 1) {
    refuse(drafts, {Refused::Reason::unacceptable, "the event contains values that cannot be stored"});
    co_return;
  }
  const auto middle = drafts.begin() + static_cast<ptrdiff_t>(drafts.size() / 2);
  auto first = commit(flush, Drafts(drafts.begin(), middle), is_repeat);
  co_await first;
  auto second = commit(flush, Drafts(middle, drafts.end()), is_repeat);
  co_await second;
}

Task<void> Publisher::State::make_tenants(Flush& flush, Drafts drafts) {
  flush.has_made_tenants = true;
  try {
    auto made = create_tenants(link, drafts);
    co_await made;
  } catch (const pg::Error& error) {
    give_up(drafts, false, error.what());
    co_return;
  }
  auto task = commit(flush, drafts, false);
  co_await task;
  flush.has_made_tenants = false;  // the other half of a batch may need others
}

Task<void> Publisher::State::wait(milliseconds& delay, base::SteadyTime deadline) {
  co_await pause.wait_until(std::min(deadline, base::BootClock::now() + jittered(delay)));
  delay = std::min(2 * delay, kPauseMax);
}

void Publisher::State::give_up(const Drafts& drafts, bool is_repeat, std::string_view why) {
  telemetry::log_error("publish_failed").field("events", drafts.size()).field("error", why);
  patience.gave_up();
  refuse(drafts, {Refused::Reason::unavailable, "the database is unavailable"});
  if (!is_repeat) return;
  unsure.push_back(delivery_range_of(drafts));
  if (background.running() == 0) background.spawn(log_unsure());
}

void Publisher::State::refuse(const Drafts& drafts, const Refused& refused) {
  for (Draft* draft : drafts) draft->answer = refused;
}

// Once the database is back, the owners look for what may have been committed after all.
Task<void> Publisher::State::log_unsure() {
  while (!unsure.empty() && !is_stopping) {
    const auto range = unsure.back();
    pg::Params params(range.first.uuid, range.last.uuid);
    try {
      co_await link.run_one(sql::log_unsure, std::move(params));
      unsure.pop_back();
      continue;
    } catch (const pg::Error& error) {
      telemetry::log_debug("unsure_deliveries_not_logged").field("error", error.what());
    }
    co_await unsure_pause.wait_for(kUnsurePause);
  }
}

// What the rows of the tenants said, for the events that come next.
void Publisher::State::learn(const std::vector<WaitingDraft>& batch) {
  if (fan_outs.size() > kFanOutsRemembered) fan_outs.clear();
  const auto now = base::BootClock::now();
  for (const auto& waiting : batch) {
    const Draft& draft = *waiting.draft;
    if (draft.rows > 1) fan_outs[draft.event.tenant_id] = draft.rows;
    if (draft.is_tenant_known && options.rates != nullptr)
      options.rates->learn(draft.event.tenant_id, draft.publish_rate_per_second, now);
  }
}

void Publisher::State::finish(Flush flush, std::vector<WaitingDraft> batch) {
  learn(batch);
  announcer.announce(std::move(flush.committed));
  base::reach("publish.before_answer");
  for (auto& waiting : batch) {
    waiting.waiter->answers[waiting.place] = std::move(*waiting.draft->answer);
    if (--waiting.waiter->missing == 0) waiting.waiter->done.set(true);
  }
}

Publisher::Publisher(runtime::Loop& loop, pg::Link& link, model::IdSource& ids, model::HandOver& hand_over,
                     const telemetry::Metrics& metrics, PublisherOptions options)
    : state_(std::make_unique<State>(loop, link, ids, hand_over, metrics, options)) {}

Publisher::~Publisher() = default;

void Publisher::on_committed(base::UniqueFunction<void(const std::vector<int>&)> callback) {
  state_->announcer.on_committed(std::move(callback));
}

void Publisher::on_wide(base::UniqueFunction<void()> callback) {
  state_->announcer.on_wide(std::move(callback));
}

Task<std::vector<PublishAnswer>> Publisher::publish_all(std::vector<NewEvent> events) {
  Waiter waiter;
  const size_t count = events.size();
  if (const auto refused = state_->take_on(std::move(events), waiter))
    co_return std::vector<PublishAnswer>(count, *refused);
  if (waiter.missing > 0) co_await waiter.done;
  co_return std::move(waiter.answers);
}

Task<PublishAnswer> Publisher::publish(NewEvent event) {
  std::vector<NewEvent> events;
  events.push_back(std::move(event));
  auto task = publish_all(std::move(events));
  auto answers = co_await task;
  co_return std::move(answers.front());
}

Task<void> Publisher::stop() {
  auto drained = state_->batcher.drain();
  co_await drained;
  runtime::OneShot<bool> answered;
  state_->loop.post([&answered] { answered.set(true); });  // behind the answers
  co_await answered;
  state_->is_stopping = true;
  state_->unsure_pause.notify();
  co_await state_->background.join();
}

}  // namespace postrider::publish
