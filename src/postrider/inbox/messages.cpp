#include "postrider/inbox/messages.hpp"

#include <algorithm>
#include <utility>

#include "postrider/inbox/messages.sql.hpp"
#include "postrider/inbox/store.sql.hpp"
#include "postrider/registry/audit.hpp"

namespace postrider::inbox {

namespace {

constexpr int kScannedMax = 2'000;  // messages in one look

using runtime::Task;
using Text = std::optional<std::string>;

Message read_message(const sql::MessageRow& row) {
  Message message;
  message.id.uuid = row.id;
  message.source_id = row.source_id;
  message.provider_id = row.provider_id;
  message.partition_key = row.partition_key;
  message.bucket = row.bucket;
  message.headers = row.headers;
  message.body = row.body;
  message.status = row.status;
  message.attempts = row.attempts;
  message.last_error = row.last_error;
  message.event_id = row.event_id;
  message.received_at = row.received_at;
  message.done_at = row.done_at;
  message.dead_at = row.dead_at;
  if (!row.queue_attempts || message.status != "pending") return message;
  message.attempts = *row.queue_attempts;
  message.leased_by = row.leased_by;
  message.due_at = row.due_at;
  message.last_error = row.queue_error;
  if (message.leased_by)
    message.status = "processing";
  else if (message.attempts > 0)
    message.status = "retrying";
  return message;
}

// The IDs to repair, in order.
Task<std::vector<base::Uuid>> chosen(pg::Link& link, const Repair& repair) {
  std::vector<base::Uuid> ids;
  for (const auto& id : repair.ids) ids.push_back(id.uuid);
  if (ids.empty()) {
    const auto rows = co_await link.run(sql::dead_ids{.source = repair.source, .rows = repair_max});
    for (const auto& row : rows) ids.push_back(row.id);
  }
  std::sort(ids.begin(), ids.end());
  co_return ids;
}

registry::AuditEntry entry_of(std::string_view action, const Repair& repair,
                              const std::vector<base::Uuid>& ids) {
  std::vector<std::string> shown;
  for (const auto& id : ids) shown.push_back(model::MessageId{id}.public_id());
  registry::Snapshot after;
  after.add("messages", shown);
  return {.action = action, .object = repair.source, .after = std::move(after), .reason = repair.reason};
}

// Newest first.
Task<pg::RowList<sql::ListedMessageRow>> find_messages(pg::Link& link, const MessageFilter& filter,
                                                       int rows_max) {
  std::optional<base::Uuid> before;
  if (filter.before) before = filter.before->uuid;
  pg::RowList<sql::ListedMessageRow> rows;
  if (filter.status == "dead")
    rows = co_await link.run(sql::dead_messages{.source = filter.source,
                                                .before = before,
                                                .since = filter.since,
                                                .until = filter.until,
                                                .rows = rows_max});
  else
    rows = co_await link.run(sql::newest_messages{.source = filter.source,
                                                  .before = before,
                                                  .since = filter.since,
                                                  .until = filter.until,
                                                  .rows = rows_max});
  co_return rows;
}

}  // namespace

Task<MessagePage> list_messages(pg::Link& link, MessageFilter filter) {
  const bool is_looked_for = filter.status && filter.status != "dead";
  const int wanted = is_looked_for ? kScannedMax : filter.limit + 1;
  const pg::RowList<sql::ListedMessageRow> found = co_await find_messages(link, filter, wanted);
  std::vector<base::Uuid> ids;
  size_t row = 0;
  for (; row < found.size() && ids.size() < static_cast<size_t>(filter.limit); ++row)
    if (!filter.status || found[row].status == *filter.status) ids.push_back(found[row].id);
  MessagePage page;
  if (row < found.size() || found.size() == static_cast<size_t>(wanted))
    page.next = model::MessageId{found[row - 1].id};
  if (ids.empty()) co_return page;
  const auto rows =
      co_await link.run(sql::messages_of_ids{.ids = ids, .smallest = ids.back(), .largest = ids.front()});
  for (const auto& each : rows) page.messages.push_back(read_message(each));
  co_return page;
}

Task<std::optional<Message>> find_message(pg::Link& link, SourceId source, model::MessageId id) {
  const auto rows = co_await link.run(sql::find_message{.id = id.uuid, .source = source});
  if (rows.empty()) co_return std::nullopt;
  co_return read_message(rows.front());
}

Task<int64_t> retry_messages(pg::Link& link, const registry::Caller& caller, Repair repair) {
  const std::vector<base::Uuid> ids = co_await chosen(link, repair);
  if (ids.empty()) co_return 0;
  const std::vector<SourceId> sources{repair.source};
  pg::Batch batch;
  batch.add(sql::lock_messages{.ids = ids});
  const auto retried = batch.add(sql::retry_messages{
      .ids = ids, .smallest = ids.front(), .largest = ids.back(), .source = repair.source});
  batch.add(sql::wake_consumers{.sources = sources});
  registry::add_audit(batch, caller, entry_of("message.retry", repair, ids));
  pg::Results results = co_await link.run(std::move(batch));
  co_return results.take(retried).front().messages;
}

Task<int64_t> discard_messages(pg::Link& link, const registry::Caller& caller, Repair repair) {
  const std::vector<base::Uuid> ids = co_await chosen(link, repair);
  if (ids.empty()) co_return 0;
  pg::Batch batch;
  batch.add(sql::lock_messages{.ids = ids});
  const auto discarded = batch.add(sql::discard_messages{.reason = repair.reason,
                                                         .ids = ids,
                                                         .smallest = ids.front(),
                                                         .largest = ids.back(),
                                                         .source = repair.source});
  registry::add_audit(batch, caller, entry_of("message.discard", repair, ids));
  pg::Results results = co_await link.run(std::move(batch));
  co_return results.take(discarded).front().messages;
}

Task<std::vector<Claimed>> claim(pg::Link& link, const Claim& wanted) {
  const auto rows = co_await link.run(sql::claim{.worker = wanted.worker,
                                                 .source_id = wanted.source,
                                                 .rows = wanted.count_max,
                                                 .lease_seconds = wanted.lease_seconds});
  std::vector<Claimed> claimed;
  for (const auto& row : rows)
    claimed.push_back({std::string(row.id), std::string(row.source), Text(row.provider_id),
                       Text(row.partition_key), std::string(row.headers), std::string(row.body), row.attempts,
                       row.received_at});
  co_return claimed;
}

}  // namespace postrider::inbox
