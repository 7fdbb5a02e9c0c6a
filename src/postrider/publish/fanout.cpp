#include "postrider/publish/fanout.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "postrider/base/check.hpp"
#include "postrider/base/fail_point.hpp"
#include "postrider/model/event_type.hpp"
#include "postrider/publish/fanout.sql.hpp"
#include "postrider/publish/unknown_commits.hpp"
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

// The event's bytes, in one version or several. Empty if the event was deleted; then nothing is sent.
struct Contents {
  std::vector<std::optional<std::string>> versions;
  std::vector<base::Uuid> ids;
  std::vector<std::shared_ptr<const model::EventContent>> contents;

  std::shared_ptr<const model::EventContent> of(const base::Uuid& id) const {
    const auto found = std::find(ids.begin(), ids.end(), id);
    return found == ids.end() ? nullptr : contents[static_cast<size_t>(found - ids.begin())];
  }
};

Contents read_contents(const pg::RowsOf<sql::event_content>& rows) {
  Contents found;
  for (const auto& row : rows) {
    auto content = std::make_shared<model::EventContent>();
    content->id = {row.id};
    content->public_id = row.public_id ? std::string(*row.public_id) : content->id.public_id();
    content->body = row.body;
    content->traceparent = row.traceparent.value_or("");
    found.versions.emplace_back(row.version);
    found.ids.push_back(row.id);
    found.contents.push_back(std::move(content));
  }
  return found;
}

struct Chunk {
  bool is_done = false;
  std::vector<model::CommittedDelivery> deliveries;
  std::vector<int> buckets;
};

Chunk read_chunk(const pg::RowsOf<sql::fan_out_chunk>& rows, const FanoutTask& task,
                 const Contents& contents) {
  Chunk chunk;
  chunk.is_done = rows.front().is_done;
  for (const auto& row : rows) {
    if (!row.delivery_id) continue;
    chunk.buckets.push_back(row.bucket.value());
    auto content = contents.of(row.event_id.value());
    if (!content) continue;
    chunk.deliveries.push_back({.id = {*row.delivery_id},
                                .endpoint_id = {row.endpoint_id.value()},
                                .tenant_id = task.tenant_id,
                                .bucket = row.bucket.value(),
                                .position = row.position.value(),
                                .due_at = task.created_at,
                                .created_at = task.created_at,
                                .event = std::move(content)});
  }
  std::sort(chunk.buckets.begin(), chunk.buckets.end());
  chunk.buckets.erase(std::unique(chunk.buckets.begin(), chunk.buckets.end()), chunk.buckets.end());
  return chunk;
}

}  // namespace

void WideFanoutOptions::validate() const {
  CHECK(chunk_endpoints > 0 && poll.count() > 0);
}

struct WideFanout::State {
  State(pg::Link& database, model::Handoff& hand_off, WideFanoutOptions fanout_options)
      : link(database), handoff(hand_off), options(runtime::validated(fanout_options)), unknown(database) {}

  pg::Link& link;
  model::Handoff& handoff;
  WideFanoutOptions options;
  base::UniqueFunction<void(const std::vector<int>&)> on_committed;
  UnknownCommits unknown;
  model::TenantId last_tenant;  // whose turn it was

  Task<bool> fan_out_chunk();
  Task<std::optional<FanoutTask>> lock_next(pg::Transaction& transaction);
  Task<Chunk> write_chunk(pg::Transaction& transaction, const FanoutTask& task, const Contents& contents);
};

Task<std::optional<FanoutTask>> WideFanout::State::lock_next(pg::Transaction& transaction) {
  while (true) {
    const bool is_from_start = last_tenant.empty();
    const auto locked = co_await transaction.run(sql::lock_task{.after_tenant = last_tenant});
    if (!locked.empty()) {
      const auto row = locked.front();
      last_tenant = row.tenant_id;
      FanoutTask task{.event_id = {row.event_id},
                      .tenant_id = last_tenant,
                      .type = std::string(row.type),
                      .version = {},
                      .created_at = row.created_at,
                      .after_endpoint = row.after_endpoint.value_or(base::Uuid{})};
      if (row.version) task.version = *row.version;
      co_return task;
    }
    if (is_from_start) co_return std::nullopt;
    last_tenant.clear();
  }
}

Task<Chunk> WideFanout::State::write_chunk(pg::Transaction& transaction, const FanoutTask& task,
                                           const Contents& contents) {
  const auto range = model::delivery_range(task.event_id, task.event_id);
  // An event that was deleted is fanned out all the same; its deliveries end as those of any lost body.
  std::vector<std::optional<std::string>> versions{task.version};
  std::vector<base::Uuid> ids{task.event_id.uuid};
  if (!contents.ids.empty()) {
    versions = contents.versions;
    ids = contents.ids;
  }
  const auto patterns = model::patterns_matching(task.type);
  const auto rows = co_await transaction.run(sql::fan_out_chunk{.patterns = patterns,
                                                                .tenant = task.tenant_id,
                                                                .after_endpoint = task.after_endpoint,
                                                                .versions = versions,
                                                                .endpoints_max = options.chunk_endpoints,
                                                                .event = task.event_id.uuid,
                                                                .version_ids = ids,
                                                                .created_at = task.created_at,
                                                                .node = options.node_id.uuid,
                                                                .first_id = range.first.uuid,
                                                                .last_id = range.last.uuid});
  co_return read_chunk(rows, task, contents);
}

Task<bool> WideFanout::State::fan_out_chunk() {
  auto transaction = co_await link.begin();
  const std::optional<FanoutTask> locked = co_await lock_next(transaction);
  if (!locked) {
    co_await transaction.rollback();
    co_return false;
  }
  const FanoutTask& task = *locked;
  const auto range = model::delivery_range(task.event_id, task.event_id);
  const auto found = co_await transaction.run(sql::event_content{
      .first_id = range.first.uuid, .last_id = range.last.uuid, .event = task.event_id.uuid});
  const Contents contents = read_contents(found);
  Chunk chunk = co_await write_chunk(transaction, task, contents);
  base::reach("fanout.before_chunk_commit");
  try {
    co_await transaction.commit();
  } catch (const pg::Error& error) {
    if (error.kind() == pg::Kind::unknown) unknown.add(range);
    throw;
  }
  base::reach("fanout.after_chunk_commit");
  if (!chunk.deliveries.empty()) handoff.offer(std::move(chunk.deliveries));
  if (on_committed && !chunk.buckets.empty()) on_committed(chunk.buckets);
  co_return true;
}

WideFanout::WideFanout(runtime::Loop& loop, pg::Link& link, model::Handoff& handoff,
                       WideFanoutOptions options)
    : Service(loop), state_(std::make_unique<State>(link, handoff, options)) {}

WideFanout::~WideFanout() = default;

void WideFanout::on_committed(base::UniqueFunction<void(const std::vector<int>&)> callback) {
  state_->on_committed = std::move(callback);
}

Task<runtime::SteadyTime> WideFanout::pass(runtime::SteadyTime now) {
  try {
    const bool has_more = co_await state_->fan_out_chunk();
    if (has_more) co_return now;
  } catch (const pg::Error& error) {
    if (error.kind() != pg::Kind::unavailable)
      telemetry::log_warn("wide_fanout_failed").field("error", error.what());
  }
  co_return base::BootClock::now() + state_->options.poll;
}

Task<void> WideFanout::finish() {
  co_await state_->unknown.stop();
}

void WideFanout::notify() {
  loop().post([this] { wake(); });
}

Task<bool> WideFanout::fan_out_chunk() {
  return state_->fan_out_chunk();
}

}  // namespace postrider::publish
