#include "postrider/upkeep/retention.hpp"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "postrider/telemetry/log.hpp"
#include "postrider/upkeep/archive.hpp"
#include "postrider/upkeep/retention.sql.hpp"
#include "postrider/upkeep/upkeep.hpp"

namespace postrider::upkeep {

namespace {

using runtime::Task;

constexpr int kRowsAtOnce = 2'000;

struct Partition {
  std::string parent, name, day;
  bool is_attached = false;
  bool is_detaching = false;  // and was interrupted
};

struct Commands {
  std::string detach, finalize, attach, drop, read;
};

Task<std::vector<Partition>> old_partitions(pg::Link& link, std::string parent, std::chrono::seconds kept) {
  pg::Params params(parent, int64_t{kept.count()});
  const pg::Rows rows = co_await link.run_one(sql::partitions, std::move(params));
  std::vector<Partition> found;
  for (size_t i = 0; i < rows.size(); ++i)
    found.push_back({parent, rows.get<std::string>(i, 0), rows.get<std::string>(i, 1), rows.get<bool>(i, 2),
                     rows.get<bool>(i, 3)});
  co_return found;
}

Task<Commands> commands_of(pg::Link& link, const Partition& partition) {
  pg::Params params(partition.parent, partition.name);
  const pg::Rows row = co_await link.run_one(sql::commands, std::move(params));
  Commands commands{row.get<std::string>(0, 0), row.get<std::string>(0, 1), row.get<std::string>(0, 2),
                    row.get<std::string>(0, 3), row.get<std::string>(0, 4)};
  co_return commands;
}

Task<void> archive(pg::Link& link, const Partition& partition, const std::string& read,
                   const std::string& directory) {
  ArchiveFile file(directory, partition.name);
  std::string last = "(0,0)";
  int64_t lines = 0;
  size_t count = 0;
  do {
    pg::Params params(last, kRowsAtOnce);
    const pg::Rows rows = co_await link.connection().execute(read, std::move(params));
    count = rows.size();
    for (size_t i = 0; i < count; ++i) file.add_line(rows.get<std::string_view>(i, 1));
    if (count > 0) last = rows.get<std::string>(count - 1, 0);
    lines += static_cast<int64_t>(count);
  } while (count == static_cast<size_t>(kRowsAtOnce));
  file.finish();
  telemetry::log_info("partition_archived").field("file", file.path()).field("rows", lines);
}

Task<bool> is_held(pg::Link& link, const Partition& partition) {
  pg::Params which(partition.parent, partition.day);
  const pg::Rows held = co_await link.run_one(sql::held_by, std::move(which));
  const auto by = held.get<std::optional<std::string>>(0, 0);
  if (by) telemetry::log_info("partition_held").field("partition", partition.name).field("by", *by);
  co_return by.has_value();
}

// False: something is in it that has to stay.
Task<bool> retire_one(pg::Link& link, const Partition& partition, const std::string& archive_dir) {
  const Commands commands = co_await commands_of(link, partition);
  if (partition.is_detaching) {
    co_await link.connection().execute(commands.finalize);
  } else if (partition.is_attached) {
    const bool has_to_stay = co_await is_held(link, partition);
    if (has_to_stay) co_return false;
    co_await link.connection().execute(commands.detach);
  }
  // The detach has waited for those who were writing: an outbox row that was left lying for long has its
  // event in an old day.
  const bool was_written = co_await is_held(link, partition);
  if (was_written) {
    co_await link.connection().execute(commands.attach);
    co_return false;
  }
  if (!archive_dir.empty()) co_await archive(link, partition, commands.read, archive_dir);
  co_await link.connection().execute(commands.drop);
  telemetry::log_info("partition_dropped").field("partition", partition.name);
  co_return true;
}

// Some rows at a time until none is left, so that no snapshot is held for long.
template <class... Values>
Task<int64_t> trim(pg::Link& link, pg::Statement statement, Values... values) {
  int64_t deleted = 0, count = 0;
  do {
    pg::Params params(values..., kRowsAtOnce);
    const pg::Rows rows = co_await link.run_one(statement, std::move(params));
    count = rows.affected_rows();
    deleted += count;
  } while (count == kRowsAtOnce);
  co_return deleted;
}

Task<void> give_up_dead_letters(pg::Link& link, int64_t kept) {
  int64_t count = 0;
  do {
    pg::Params params(kept, kRowsAtOnce);
    const pg::Rows rows = co_await link.run_one(sql::discard_dead_letters, std::move(params));
    count = rows.get<int64_t>(0, 0);
    if (count > 0) telemetry::log_warn("dead_letters_given_up").field("count", count);
  } while (count == kRowsAtOnce);
}

// What is in no partition of its own.
Task<int64_t> trim_all(pg::Link& link, const RetentionOptions& options) {
  const int64_t events = options.events.count(), attempts = options.attempts.count();
  const int64_t inbox = options.inbox.count(), audit = options.audit.count();
  const int64_t rollups = options.rollups.count();
  int64_t deleted = co_await trim(link, sql::trim_event_keys, events);
  deleted += co_await trim(link, sql::trim_replayed, events);
  deleted += co_await trim(link, sql::trim_replays, attempts);
  deleted += co_await trim(link, sql::trim_pauses);
  deleted += co_await trim(link, sql::trim_inbox_keys, inbox);
  deleted += co_await trim(link, sql::trim_audit, audit);
  deleted += co_await trim(link, sql::trim_rollups, rollups);
  deleted += co_await trim(link, sql::trim_closed_hours, rollups);
  co_return deleted;
}

Task<Retired> retire_all(pg::Link& link, const RetentionOptions& options) {
  Retired retired;
  const int64_t events = options.events.count();
  pg::Params since(events);
  co_await link.run_one(sql::keep_events_since, std::move(since));
  co_await give_up_dead_letters(link, events);
  const int64_t inbox = options.inbox.count();
  retired.rows_deleted = co_await trim(link, sql::abandon_messages, inbox);
  const std::vector<std::pair<std::string, std::chrono::seconds>> parents = {{"event", options.events},
                                                                             {"attempt", options.attempts},
                                                                             {"dead_letter", options.events},
                                                                             {"inbox", options.inbox}};
  for (const auto& [parent, kept] : parents) {
    const std::vector<Partition> old = co_await old_partitions(link, parent, kept);
    for (const Partition& partition : old) {
      const bool is_dropped = co_await retire_one(link, partition, options.archive_dir);
      is_dropped ? ++retired.dropped : ++retired.held;
    }
  }
  retired.rows_deleted += co_await trim_all(link, options);
  co_return retired;
}

}  // namespace

RetentionOptions RetentionOptions::from(const config::Config& config) {
  return {.events = config.retain_events,
          .attempts = config.retain_attempts,
          .inbox = config.retain_inbox,
          .audit = config.retain_audit,
          .rollups = config.retain_rollups,
          .archive_dir = config.archive_dir};
}

int days_back(const RetentionOptions& options) {
  const auto kept =
      std::chrono::floor<std::chrono::days>(std::min({options.events, options.attempts, options.inbox}));
  return std::min(kPartitionDaysBack, static_cast<int>(kept.count()));
}

Task<Retired> retire(pg::Link& link, RetentionOptions options) {
  Retired retired;
  const pg::Rows locked = co_await link.run_one(sql::lock_retention);
  if (!locked.get<bool>(0, 0)) co_return retired;
  std::exception_ptr error;
  try {
    auto pass = retire_all(link, options);
    retired = co_await pass;
  } catch (...) {
    error = std::current_exception();
  }
  if (link.is_up()) co_await link.run_one(sql::unlock_retention);
  if (error) std::rethrow_exception(error);
  co_return retired;
}

}  // namespace postrider::upkeep
