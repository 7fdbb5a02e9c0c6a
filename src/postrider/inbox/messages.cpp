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
using Time = std::optional<base::Timestamp>;

Message read_message(const pg::Rows& rows, size_t row) {
  Message message;
  message.id.uuid = rows.get<base::Uuid>(row, 0);
  message.source_id = rows.get<std::string>(row, 1);
  message.provider_id = rows.get<Text>(row, 2);
  message.partition_key = rows.get<Text>(row, 3);
  message.bucket = rows.get<int32_t>(row, 4);
  message.headers = rows.get<std::string>(row, 5);
  message.body = rows.get<std::string>(row, 6);
  message.status = rows.get<std::string>(row, 7);
  message.attempts = rows.get<int32_t>(row, 8);
  message.last_error = rows.get<Text>(row, 9);
  message.event_id = rows.get<Text>(row, 10);
  message.received_at = rows.get<base::Timestamp>(row, 11);
  message.done_at = rows.get<Time>(row, 12);
  message.dead_at = rows.get<Time>(row, 13);
  const auto queued = rows.get<std::optional<int32_t>>(row, 14);
  if (!queued || message.status != "pending") return message;
  message.attempts = *queued;
  message.leased_by = rows.get<Text>(row, 15);
  message.due_at = rows.get<Time>(row, 16);
  message.last_error = rows.get<Text>(row, 17);
  if (message.leased_by)
    message.status = "processing";
  else if (message.attempts > 0)
    message.status = "retrying";
  return message;
}

// The ids to repair, in order.
Task<std::vector<base::Uuid>> chosen(pg::Link& link, const Repair& repair) {
  std::vector<base::Uuid> ids;
  for (const auto& id : repair.ids) ids.push_back(id.uuid);
  if (ids.empty()) {
    pg::Params params(repair.source, repair_max);
    const pg::Rows rows = co_await link.run_one(sql::dead_ids, std::move(params));
    for (size_t row = 0; row < rows.size(); ++row) ids.push_back(rows.get<base::Uuid>(row, 0));
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

}  // namespace

Task<MessagePage> list_messages(pg::Link& link, MessageFilter filter) {
  std::optional<base::Uuid> before;
  if (filter.before) before = filter.before->uuid;
  const bool is_looked_for = filter.status && filter.status != "dead";
  const int wanted = is_looked_for ? kScannedMax : filter.limit + 1;
  pg::Params params(filter.source, before, wanted, filter.since, filter.until);
  const pg::Statement statement = filter.status == "dead" ? sql::dead_messages : sql::newest_messages;
  const pg::Rows found = co_await link.run_one(statement, std::move(params));
  std::vector<base::Uuid> ids;
  size_t row = 0;
  for (; row < found.size() && ids.size() < static_cast<size_t>(filter.limit); ++row)
    if (!filter.status || found.get<std::string_view>(row, 1) == *filter.status)
      ids.push_back(found.get<base::Uuid>(row, 0));
  MessagePage page;
  if (row < found.size() || found.size() == static_cast<size_t>(wanted))
    page.next = model::MessageId{found.get<base::Uuid>(row - 1, 0)};
  if (ids.empty()) co_return page;
  pg::Params which(ids, ids.back(), ids.front());
  const pg::Rows rows = co_await link.run_one(sql::messages_of_ids, std::move(which));
  for (size_t each = 0; each < rows.size(); ++each) page.messages.push_back(read_message(rows, each));
  co_return page;
}

Task<std::optional<Message>> find_message(pg::Link& link, SourceId source, model::MessageId id) {
  pg::Params params(source, id.uuid);
  const pg::Rows rows = co_await link.run_one(sql::find_message, std::move(params));
  if (rows.empty()) co_return std::nullopt;
  co_return read_message(rows, 0);
}

Task<int64_t> retry_messages(pg::Link& link, const registry::Caller& caller, Repair repair) {
  const std::vector<base::Uuid> ids = co_await chosen(link, repair);
  if (ids.empty()) co_return 0;
  const std::vector<SourceId> sources{repair.source};
  pg::Batch batch;
  batch.with(sql::lock_messages, ids)
      .with(sql::retry_messages, repair.source, ids, ids.front(), ids.back())
      .with(sql::wake_consumers, sources);
  registry::add_audit(batch, caller, entry_of("message.retry", repair, ids));
  const std::vector<pg::Rows> done = co_await link.run(std::move(batch));
  co_return done[1].get<int64_t>(0, 0);
}

Task<int64_t> discard_messages(pg::Link& link, const registry::Caller& caller, Repair repair) {
  const std::vector<base::Uuid> ids = co_await chosen(link, repair);
  if (ids.empty()) co_return 0;
  pg::Batch batch;
  batch.with(sql::lock_messages, ids)
      .with(sql::discard_messages, repair.source, ids, ids.front(), ids.back(), repair.reason);
  registry::add_audit(batch, caller, entry_of("message.discard", repair, ids));
  const std::vector<pg::Rows> done = co_await link.run(std::move(batch));
  co_return done[1].get<int64_t>(0, 0);
}

Task<std::vector<Claimed>> claim(pg::Link& link, const Claim& wanted) {
  pg::Params params(wanted.worker, wanted.source, wanted.count_max, wanted.lease_seconds);
  const pg::Rows rows = co_await link.run_one(sql::claim, std::move(params));
  std::vector<Claimed> claimed;
  for (size_t row = 0; row < rows.size(); ++row)
    claimed.push_back({rows.get<std::string>(row, 0), rows.get<std::string>(row, 1), rows.get<Text>(row, 2),
                       rows.get<Text>(row, 3), rows.get<std::string>(row, 4), rows.get<std::string>(row, 5),
                       rows.get<int32_t>(row, 6), rows.get<base::Timestamp>(row, 7)});
  co_return claimed;
}

}  // namespace postrider::inbox
