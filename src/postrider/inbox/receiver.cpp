#include "postrider/inbox/receiver.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <ranges>
#include <set>
#include <unordered_map>

#include "postrider/base/fail_point.hpp"
#include "postrider/crypto/digest.hpp"
#include "postrider/inbox/store.sql.hpp"
#include "postrider/pg/batch_commit.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::inbox {

namespace {

using runtime::Task;
using std::chrono::milliseconds;

// A repair creates partitions. It is repeated until the deadline, since the message is not to blame.
constexpr pg::CommitPolicy kPolicy{.pauses = {.min = milliseconds(5), .max = milliseconds(250)},
                                   .repairs_max = std::numeric_limits<int>::max()};

struct Waiting {
  NewMessage message;
  base::SteadyTime came;
  model::MessageId id;  // fixed when the batch is formed, and kept over every repetition
  std::optional<Stored> answer;
  runtime::OneShot<Stored> done;
};
using Batch = std::vector<Waiting*>;

bool has_content(std::span<Waiting* const> batch) {
  return std::ranges::any_of(batch,
                             [](const Waiting* waiting) { return waiting->message.content.has_value(); });
}

pg::Batch store_batch(std::span<Waiting* const> batch, int buckets) {
  using Text = std::string_view;
  using OptionalText = std::optional<std::string_view>;
  const auto column = [batch](auto get) {
    return std::views::transform(batch, [get](const Waiting* waiting) { return get(waiting->message); });
  };
  const auto ids = std::views::transform(batch, [](const Waiting* waiting) { return waiting->id.uuid; });
  pg::Batch store;
  store.add(sql::store{
      .ids = ids,
      .sources = column([](const NewMessage& message) { return Text(message.source_id); }),
      .keys = column([](const NewMessage& message) { return Text(message.key); }),
      .provider_ids = column([](const NewMessage& message) { return OptionalText(message.provider_id); }),
      .partition_keys = column([](const NewMessage& message) { return OptionalText(message.partition_key); }),
      .buckets = std::views::transform(batch,
                                       [buckets](const Waiting* waiting) {
                                         return int32_t{bucket_of(waiting->message, waiting->id, buckets)};
                                       }),
      .are_ordered = column([](const NewMessage& message) { return message.is_ordered; }),
      .headers = column([](const NewMessage& message) { return Text(message.headers); }),
      .bodies = column([](const NewMessage& message) { return Text(message.body); }),
      .are_consumed = column([](const NewMessage& message) { return message.is_consumed; }),
      .are_forwarded = column([](const NewMessage& message) { return message.is_forwarded; }),
      .digests = column([](const NewMessage& message) -> std::optional<pg::Bytes> {
        if (!message.content) return std::nullopt;
        return pg::Bytes{message.content->digest.view()};
      }),
      .topics = column([](const NewMessage& message) -> OptionalText {
        if (!message.content) return std::nullopt;
        return message.content->topic;
      })});
  if (has_content(batch)) store.add(sql::release_keys{.ids = ids});
  return store;
}

// The result of a message that follows another with the same key in one batch.
Stored result_of_follower(const Waiting& leader, const Waiting& follower) {
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

struct Receiver::State final : pg::BatchWriter<Waiting*> {
  State(runtime::Loop& loop_, pg::Link& link_, model::IdSource& ids_, const telemetry::Metrics& metrics_,
        ReceiverOptions options_)
      : loop(loop_),
        link(link_),
        ids(ids_),
        stored(Metrics(metrics_).received.at("stored")),
        duplicates(Metrics(metrics_).received.at("duplicate")),
        content_duplicates(Metrics(metrics_).received.at("duplicate_content")),
        batch_size(Metrics(metrics_).batch_items),
        options(options_),
        patience(options.give_up_after),
        batcher(options.limits, [this](Batch batch) { return flush(std::move(batch)); }),
        commit(loop_, kPolicy) {}

  runtime::Loop& loop;
  pg::Link& link;
  model::IdSource& ids;
  telemetry::Counter stored, duplicates, content_duplicates;
  telemetry::Histogram batch_size;
  ReceiverOptions options;
  pg::Patience patience;
  base::UniqueFunction<void(std::vector<SourceId>)> on_stored;
  pg::Batcher<Waiting*> batcher;  // each lives in the frame of its store()
  pg::BatchCommit<Waiting*> commit;

  Task<void> flush(Batch batch);
  Task<void> write(Items batch, pg::CommitAttempt attempt) override;
  Task<void> reject(Waiting* const& waiting, const pg::Error& error) override;
  Task<pg::Repair> repair(Items batch, const pg::Error& error) override;
  void give_up(Items batch, const pg::Error& error, pg::CommitAttempt attempt) override;
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
    const pg::AnswerDeadline answer(link, *deadline);
    const pg::CommitAttempt first{.deadline = *deadline};
    co_await commit.run(*this, leaders, first);
  } else {
    const pg::Error error(pg::Kind::unavailable, "no time is left after a batch that failed");
    give_up(leaders, error, {});
  }
  for (const auto& [follower, leader] : followers) follower->answer = result_of_follower(*leader, *follower);
  // Sending the responses of a large batch takes a while; meanwhile the next batch is already in progress.
  loop.post([this, answered = std::move(batch)] { finish(answered); });
}

// Repeating it is safe: a message that an earlier attempt committed is found by its key, and is then a
// duplicate of itself.
Task<void> Receiver::State::write(Items batch, pg::CommitAttempt attempt) {
  pg::Batch store = store_batch(batch, options.buckets);
  base::reach("inbox.before_store");
  const auto results = co_await link.run(std::move(store), *attempt.deadline);
  base::reach("inbox.after_commit");
  patience.succeeded();
  std::unordered_map<base::Uuid, Stored> took_its_key;
  for (size_t i = 0; i < results[0].size(); ++i) {
    const auto row = sql::store::Row::read(results[0], i);
    took_its_key.emplace(row.id, row.is_stored ? Stored::stored : Stored::duplicate_content);
  }
  for (Waiting* waiting : batch) {
    const auto found = took_its_key.find(waiting->id.uuid);
    waiting->answer = found == took_its_key.end() ? Stored::duplicate : found->second;
  }
}

Task<void> Receiver::State::reject(Waiting* const& waiting, const pg::Error&) {
  waiting->answer = Stored::unacceptable;
  co_return;
}

Task<pg::Repair> Receiver::State::repair(Items batch, const pg::Error& error) {
  if (!pg::is_missing_partition(error)) co_return pg::Repair::none;
  pg::Batch make;
  make.add(sql::limit_lock_wait{});
  make.add(sql::make_inbox_partition{.id = batch.front()->id.uuid});
  make.add(sql::make_inbox_partition{.id = batch.back()->id.uuid});
  try {
    co_await link.run(std::move(make));
  } catch (const pg::Error& failure) {
    // The next attempt finds it created by another node, or creates it.
    telemetry::log_warn("inbox_partition_not_made").field("error", failure.what());
  }
  co_return pg::Repair::done;
}

void Receiver::State::give_up(Items batch, const pg::Error& error, pg::CommitAttempt) {
  telemetry::log_error("inbox_store_failed").field("messages", batch.size()).field("error", error.what());
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
  const pg::BatchWeight weight{2, bytes};
  state_->batcher.add(&waiting, weight);
  state_->batcher.start();
  co_return co_await waiting.done;
}

Task<void> Receiver::stop() {
  co_await state_->batcher.drain();
  runtime::OneShot<bool> answered;
  state_->loop.post([&answered] { answered.set(true); });  // after the results
  co_await answered;
}

}  // namespace postrider::inbox
