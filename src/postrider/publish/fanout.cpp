#include "postrider/publish/fanout.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "postrider/base/fail_point.hpp"
#include "postrider/model/event_type.hpp"
#include "postrider/publish/fanout.sql.hpp"
#include "postrider/publish/recover.sql.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::publish {

namespace {

using runtime::Task;

struct FanoutTask {
  model::EventId event_id;
  model::TenantId tenant_id;
  std::string type;
  std::optional<std::string> version;
  base::Timestamp created_at;
  base::Uuid after_endpoint;  // nil before the first chunk
};

FanoutTask read_task(const pg::Rows& rows) {
  return {{rows.get<base::Uuid>(0, 0)},    rows.get<std::string>(0, 1),
          rows.get<std::string>(0, 2),     rows.get<std::optional<std::string>>(0, 3),
          rows.get<base::Timestamp>(0, 4), rows.get<std::optional<base::Uuid>>(0, 5).value_or(base::Uuid{})};
}

// The event's bytes, in one version or several. Empty when the event is gone: then there is nothing to send.
struct Contents {
  std::vector<std::optional<std::string>> versions;
  std::vector<base::Uuid> ids;
  std::vector<std::shared_ptr<const model::EventContent>> contents;

  std::shared_ptr<const model::EventContent> of(const base::Uuid& id) const {
    const auto found = std::find(ids.begin(), ids.end(), id);
    return found == ids.end() ? nullptr : contents[static_cast<size_t>(found - ids.begin())];
  }
};

Contents read_contents(const pg::Rows& rows) {
  enum Column : size_t { id, version, public_id, body, traceparent };
  using Text = std::optional<std::string>;
  Contents found;
  for (size_t row = 0; row < rows.size(); ++row) {
    auto content = std::make_shared<model::EventContent>();
    content->id = {rows.get<base::Uuid>(row, id)};
    content->public_id = rows.get<Text>(row, public_id).value_or(content->id.public_id());
    content->body = rows.get<std::string>(row, body);
    content->traceparent = rows.get<Text>(row, traceparent).value_or("");
    found.versions.push_back(rows.get<Text>(row, version));
    found.ids.push_back(content->id.uuid);
    found.contents.push_back(std::move(content));
  }
  return found;
}

struct Chunk {
  bool is_done = false;
  std::vector<model::CommittedDelivery> deliveries;
  std::vector<int> buckets;
};

Chunk read_chunk(const pg::Rows& rows, const FanoutTask& task, const Contents& contents) {
  enum Column : size_t { is_done, id, endpoint_id, bucket, position, event_id };
  Chunk chunk;
  chunk.is_done = rows.get<bool>(0, is_done);
  for (size_t row = 0; row < rows.size(); ++row) {
    if (rows.is_null(row, id)) continue;
    model::CommittedDelivery delivery;
    delivery.id = {rows.get<base::Uuid>(row, id)};
    delivery.endpoint_id = {rows.get<base::Uuid>(row, endpoint_id)};
    delivery.tenant_id = task.tenant_id;
    delivery.bucket = rows.get<int32_t>(row, bucket);
    delivery.position = rows.get<int64_t>(row, position);
    delivery.due_at = delivery.created_at = task.created_at;
    delivery.event = contents.of(rows.get<base::Uuid>(row, event_id));
    chunk.buckets.push_back(delivery.bucket);
    if (delivery.event) chunk.deliveries.push_back(std::move(delivery));
  }
  std::sort(chunk.buckets.begin(), chunk.buckets.end());
  chunk.buckets.erase(std::unique(chunk.buckets.begin(), chunk.buckets.end()), chunk.buckets.end());
  return chunk;
}

}  // namespace

struct WideFanout::State {
  State(runtime::Loop& loop_, pg::Link& link_, model::HandOver& hand_over_, WideFanoutOptions options_)
      : loop(loop_), link(link_), hand_over(hand_over_), options(options_), wakeup(loop_) {}

  runtime::Loop& loop;
  pg::Link& link;
  model::HandOver& hand_over;
  WideFanoutOptions options;
  base::UniqueFunction<void(const std::vector<int>&)> on_committed;
  runtime::Wakeup wakeup;
  runtime::TaskGroup group;
  bool is_stopping = false;
  std::optional<model::DeliveryRange> unsure;  // of a chunk whose commit was not answered
  model::TenantId last_tenant;                 // whose turn it was

  Task<void> run();
  Task<bool> run_once();
  Task<std::optional<FanoutTask>> lock_next(pg::Transaction& transaction);
  pg::Batch chunk_batch(const FanoutTask& task, const Contents& contents) const;
};

Task<void> WideFanout::State::run() {
  while (!is_stopping) {
    bool has_more = false;
    try {
      auto pass = run_once();
      has_more = co_await pass;
    } catch (const pg::Error& error) {
      if (error.kind() != pg::Kind::unavailable)
        telemetry::log_warn("wide_fanout_failed").field("error", error.what());
    }
    if (!has_more && !is_stopping) co_await wakeup.wait_for(options.poll);
  }
}

pg::Batch WideFanout::State::chunk_batch(const FanoutTask& task, const Contents& contents) const {
  const auto range = model::delivery_range(task.event_id, task.event_id);
  // An event that is gone is fanned out all the same; its deliveries end as those of any lost body.
  std::vector<std::optional<std::string>> versions{task.version};
  std::vector<base::Uuid> ids{task.event_id.uuid};
  if (!contents.ids.empty()) {
    versions = contents.versions;
    ids = contents.ids;
  }
  pg::Batch batch;
  batch.with(sql::fan_out_chunk, task.event_id.uuid, task.tenant_id, model::patterns_matching(task.type),
             versions, task.created_at, task.after_endpoint, int32_t{options.chunk_endpoints},
             options.node_id.uuid, range.first.uuid, range.last.uuid, ids);
  return batch;
}

Task<std::optional<FanoutTask>> WideFanout::State::lock_next(pg::Transaction& transaction) {
  while (true) {
    const bool is_from_start = last_tenant.empty();
    pg::Batch lock;
    lock.with(sql::lock_task, last_tenant);
    const auto locked = co_await transaction.run(std::move(lock));
    if (!locked[0].empty()) {
      FanoutTask task = read_task(locked[0]);
      last_tenant = task.tenant_id;
      co_return task;
    }
    if (is_from_start) co_return std::nullopt;
    last_tenant.clear();
  }
}

Task<bool> WideFanout::State::run_once() {
  if (unsure) {
    // That chunk may be in the queue without having been handed over: every owner looks for it.
    pg::Params params(unsure->first.uuid, unsure->last.uuid);
    co_await link.run_one(sql::log_unsure, std::move(params));
    unsure.reset();
  }
  auto transaction = co_await link.begin();
  auto locking = lock_next(transaction);
  const std::optional<FanoutTask> locked = co_await locking;
  if (!locked) {
    co_await transaction.rollback();
    co_return false;
  }
  const FanoutTask& task = *locked;
  const auto range = model::delivery_range(task.event_id, task.event_id);
  pg::Batch look;
  look.with(sql::event_content, range.first.uuid, range.last.uuid, task.event_id.uuid);
  const auto found = co_await transaction.run(std::move(look));
  const Contents contents = read_contents(found[0]);
  pg::Batch batch = chunk_batch(task, contents);
  const auto results = co_await transaction.run(std::move(batch));
  Chunk chunk = read_chunk(results[0], task, contents);
  base::reach("fanout.before_chunk_commit");
  try {
    co_await transaction.commit();
  } catch (const pg::Error& error) {
    if (error.kind() == pg::Kind::unknown) unsure = model::delivery_range(task.event_id, task.event_id);
    throw;
  }
  base::reach("fanout.after_chunk_commit");
  if (!chunk.deliveries.empty()) hand_over.offer(std::move(chunk.deliveries));
  if (on_committed && !chunk.buckets.empty()) on_committed(chunk.buckets);
  co_return true;
}

WideFanout::WideFanout(runtime::Loop& loop, pg::Link& link, model::HandOver& hand_over,
                       WideFanoutOptions options)
    : state_(std::make_unique<State>(loop, link, hand_over, options)) {}

WideFanout::~WideFanout() = default;

void WideFanout::on_committed(base::UniqueFunction<void(const std::vector<int>&)> callback) {
  state_->on_committed = std::move(callback);
}

void WideFanout::start() {
  state_->group.spawn(state_->run());
}

Task<void> WideFanout::stop() {
  state_->is_stopping = true;
  state_->wakeup.notify();
  co_await state_->group.join();
}

void WideFanout::notify() {
  state_->loop.post([this] { state_->wakeup.notify(); });
}

Task<bool> WideFanout::run_once() {
  auto pass = state_->run_once();
  const bool did_something = co_await pass;
  co_return did_something;
}

}  // namespace postrider::publish
