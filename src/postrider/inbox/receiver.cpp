#include "postrider/inbox/receiver.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <unordered_map>

#include "postrider/base/fail_point.hpp"
#include "postrider/crypto/digest.hpp"
#include "postrider/inbox/store.sql.hpp"
#include "postrider/publish/patience.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::inbox {

namespace {

using runtime::Task;
using std::chrono::milliseconds;

constexpr milliseconds kPauseMin{5}, kPauseMax{250};

struct Waiting {
  NewMessage message;
  base::SteadyTime came;
  model::MessageId id;  // fixed when the batch is formed, and kept over every repetition
  std::optional<Stored> answer;
  runtime::OneShot<Stored> done;
};
using Batch = std::vector<Waiting*>;

// A row that found no partition: a check violation of no named constraint.
bool is_missing_partition(const pg::Error& error) {
  return error.sqlstate() == "23514" && error.constraint().empty();
}

pg::Params store_params(const Batch& batch, int buckets) {
  std::vector<base::Uuid> ids;
  std::vector<std::string_view> sources, keys, headers, bodies;
  std::vector<std::optional<std::string_view>> provider_ids, partition_keys;
  std::vector<int32_t> of_buckets;
  std::vector<bool> ordered, consumed, forwarded;
  std::vector<std::optional<pg::Bytes>> digests;
  std::vector<std::optional<std::string_view>> topics;
  for (const Waiting* waiting : batch) {
    const NewMessage& message = waiting->message;
    ids.push_back(waiting->id.uuid);
    sources.push_back(message.source_id);
    keys.push_back(message.key);
    provider_ids.push_back(message.provider_id);
    partition_keys.push_back(message.partition_key);
    of_buckets.push_back(bucket_of(message, waiting->id, buckets));
    ordered.push_back(message.is_ordered);
    headers.push_back(message.headers);
    bodies.push_back(message.body);
    consumed.push_back(message.is_consumed);
    forwarded.push_back(message.is_forwarded);
    const auto& content = message.content;
    digests.push_back(content ? std::optional(pg::Bytes{content->digest.view()}) : std::nullopt);
    topics.push_back(content ? std::optional<std::string_view>(content->topic) : std::nullopt);
  }
  return pg::Params(ids, sources, keys, provider_ids, partition_keys, of_buckets, ordered, headers, bodies,
                    consumed, forwarded, digests, topics);
}

bool has_content(const Batch& batch) {
  return std::ranges::any_of(batch,
                             [](const Waiting* waiting) { return waiting->message.content.has_value(); });
}

pg::Batch store_batch(const Batch& batch, int buckets) {
  pg::Batch store(sql::store, store_params(batch, buckets));
  if (!has_content(batch)) return store;
  std::vector<base::Uuid> ids;
  for (const Waiting* waiting : batch) ids.push_back(waiting->id.uuid);
  store.with(sql::release_keys, ids);
  return store;
}

// What a message gets that came in one batch behind another with its key.
Stored answer_behind(const Waiting& leader, const Waiting& follower) {
  if (leader.answer == Stored::stored) return Stored::duplicate;
  // The leader left its key free, and this may be the message that the key belongs to: let it come again.
  if (leader.answer == Stored::duplicate_content && leader.message.content != follower.message.content)
    return Stored::overloaded;
  return *leader.answer;
}

}  // namespace

int bucket_of(const NewMessage& message, model::MessageId id, int buckets) {
  model::EndpointId hashed{id.uuid};
  if (message.partition_key) {
    const auto digest = crypto::sha256(message.source_id + "/" + *message.partition_key);
    std::memcpy(hashed.uuid.bytes.data(), digest.data(), hashed.uuid.bytes.size());
  }
  return model::bucket_of(hashed, buckets);
}

struct Receiver::State {
  State(runtime::Loop& loop_, pg::Link& link_, model::IdSource& ids_, const telemetry::Metrics& metrics_,
        ReceiverOptions options_)
      : loop(loop_),
        link(link_),
        ids(ids_),
        stored(metrics_.inbox_received.at("stored")),
        duplicates(metrics_.inbox_received.at("duplicate")),
        content_duplicates(metrics_.inbox_received.at("duplicate_content")),
        batch_size(metrics_.batch_size.at("inbox")),
        options(options_),
        patience(options.give_up_after),
        batcher(options.limits, [this](Batch batch) { return flush(std::move(batch)); }),
        pause(loop_) {}

  runtime::Loop& loop;
  pg::Link& link;
  model::IdSource& ids;
  telemetry::Counter stored, duplicates, content_duplicates;
  telemetry::Histogram batch_size;
  ReceiverOptions options;
  publish::Patience patience;
  base::UniqueFunction<void(std::vector<SourceId>)> on_stored;
  publish::Batcher<Waiting*> batcher;  // each lives in the frame of its store()
  runtime::Wakeup pause;               // between tries of the one flush that runs

  Task<void> flush(Batch batch);
  Task<void> commit(Batch batch, base::SteadyTime deadline);
  Task<std::optional<pg::Error>> try_commit(const Batch& batch, base::SteadyTime deadline);
  Task<void> commit_halves(Batch batch, base::SteadyTime deadline);
  Task<void> make_partition(const Batch& batch);
  void give_up(const Batch& batch, std::string_view why);
  void finish(const Batch& batch);
};

// Two with the same key in one batch: the first is stored, the others share its fate.
Task<void> Receiver::State::flush(Batch batch) {
  batch_size.observe(static_cast<double>(batch.size()));
  std::map<std::pair<std::string_view, std::string_view>, Waiting*> firsts;
  std::vector<std::pair<Waiting*, Waiting*>> followers;
  Batch leaders;
  for (Waiting* waiting : batch) {
    const auto [first, is_new] =
        firsts.try_emplace({waiting->message.source_id, waiting->message.key}, waiting);
    if (!is_new) {
      followers.emplace_back(waiting, first->second);
      continue;
    }
    waiting->id.uuid = ids.next();
    leaders.push_back(waiting);
  }
  if (const auto deadline = patience.deadline(batch.front()->came, base::BootClock::now())) {
    auto task = commit(leaders, *deadline);
    co_await task;
  } else {
    give_up(leaders, "no time was left after a batch that failed");
  }
  for (const auto& [follower, leader] : followers) follower->answer = answer_behind(*leader, *follower);
  // Answering takes a while for a large batch; meanwhile the next one is already on its way.
  loop.post([this, answered = std::move(batch)] { finish(answered); });
}

Task<void> Receiver::State::commit(Batch batch, base::SteadyTime deadline) {
  milliseconds delay = kPauseMin;
  while (true) {
    auto attempt = try_commit(batch, deadline);
    const auto error = co_await attempt;
    if (!error) co_return;
    if (error->kind() == pg::Kind::other || base::BootClock::now() >= deadline) {
      give_up(batch, error->what());
      co_return;
    }
    if (is_missing_partition(*error)) {
      auto task = make_partition(batch);
      co_await task;
    } else if (error->kind() == pg::Kind::item) {
      auto task = commit_halves(std::move(batch), deadline);
      co_await task;
      co_return;
    }
    co_await pause.wait_until(std::min(deadline, base::BootClock::now() + delay));
    delay = std::min(2 * delay, kPauseMax);
  }
}

// Answers the batch, or says why not. Repeating it is safe: what an earlier try has committed is found by its
// key, and is then a duplicate of itself.
Task<std::optional<pg::Error>> Receiver::State::try_commit(const Batch& batch, base::SteadyTime deadline) {
  try {
    pg::Batch store = store_batch(batch, options.buckets);
    base::reach("inbox.before_store");
    const auto results = co_await link.run(std::move(store), deadline);
    base::reach("inbox.after_commit");
    patience.succeeded();
    std::unordered_map<base::Uuid, Stored> took_its_key;
    for (size_t row = 0; row < results[0].size(); ++row)
      took_its_key.emplace(results[0].get<base::Uuid>(row, 0),
                           results[0].get<bool>(row, 1) ? Stored::stored : Stored::duplicate_content);
    for (Waiting* waiting : batch) {
      const auto found = took_its_key.find(waiting->id.uuid);
      waiting->answer = found == took_its_key.end() ? Stored::duplicate : found->second;
    }
  } catch (const pg::Error& error) {
    co_return error;
  }
  co_return std::nullopt;
}

// One of them is at fault: it is found by halving, and the others are stored.
Task<void> Receiver::State::commit_halves(Batch batch, base::SteadyTime deadline) {
  if (batch.size() == 1) {
    batch.front()->answer = Stored::unacceptable;
    co_return;
  }
  const auto middle = batch.begin() + static_cast<ptrdiff_t>(batch.size() / 2);
  auto first = commit(Batch(batch.begin(), middle), deadline);
  co_await first;
  auto second = commit(Batch(middle, batch.end()), deadline);
  co_await second;
}

Task<void> Receiver::State::make_partition(const Batch& batch) {
  pg::Batch make;
  make.add(sql::limit_lock_wait);
  make.with(sql::make_inbox_partition, batch.front()->id.uuid);
  make.with(sql::make_inbox_partition, batch.back()->id.uuid);
  try {
    co_await link.run(std::move(make));
  } catch (const pg::Error& error) {
    // The next try finds it made by somebody else, or makes it.
    telemetry::log_warn("inbox_partition_not_made").field("error", error.what());
  }
}

void Receiver::State::give_up(const Batch& batch, std::string_view why) {
  telemetry::log_error("inbox_store_failed").field("messages", batch.size()).field("error", why);
  patience.gave_up();
  for (Waiting* waiting : batch) waiting->answer = Stored::unavailable;
}

void Receiver::State::finish(const Batch& batch) {
  std::set<SourceId> sources;
  double stored_count = 0, duplicate_count = 0, content_count = 0;
  for (const Waiting* waiting : batch) {
    if (waiting->answer == Stored::duplicate) ++duplicate_count;
    if (waiting->answer == Stored::duplicate_content) ++content_count;
    if (waiting->answer != Stored::stored) continue;
    ++stored_count;
    sources.insert(waiting->message.source_id);
  }
  stored.add(stored_count);
  duplicates.add(duplicate_count);
  content_duplicates.add(content_count);
  if (!sources.empty() && on_stored) on_stored({sources.begin(), sources.end()});
  base::reach("inbox.before_answer");
  for (Waiting* waiting : batch) waiting->done.set(*waiting->answer);
}

Receiver::Receiver(runtime::Loop& loop, pg::Link& link, model::IdSource& ids,
                   const telemetry::Metrics& metrics, ReceiverOptions options)
    : state_(std::make_unique<State>(loop, link, ids, metrics, options)) {}
Receiver::~Receiver() = default;

void Receiver::on_stored(base::UniqueFunction<void(std::vector<SourceId>)> callback) {
  state_->on_stored = std::move(callback);
}

Task<Stored> Receiver::store(NewMessage message) {
  if (!state_->ids.is_ready()) co_return Stored::unavailable;
  const size_t bytes = message.body.size() + message.headers.size();
  if (!state_->batcher.has_room(1, bytes)) co_return Stored::overloaded;
  Waiting waiting;
  waiting.message = std::move(message);
  waiting.came = base::BootClock::now();
  const publish::BatchWeight weight{2, bytes};
  state_->batcher.add(&waiting, weight);
  state_->batcher.start();
  co_return co_await waiting.done;
}

Task<void> Receiver::stop() {
  auto drained = state_->batcher.drain();
  co_await drained;
  runtime::OneShot<bool> answered;
  state_->loop.post([&answered] { answered.set(true); });  // behind the answers
  co_await answered;
}

}  // namespace postrider::inbox
