#include "postrider/upkeep/retention.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "postrider/telemetry/log.hpp"
#include "postrider/upkeep/archive.hpp"
#include "postrider/upkeep/keep.hpp"
#include "postrider/upkeep/retention.sql.hpp"
#include "postrider/upkeep/upkeep.hpp"
#include "postrider/upkeep/waiting.hpp"

namespace postrider::upkeep {

namespace {

using runtime::Task;

constexpr int kRowsAtOnce = 2'000;
constexpr int64_t kBlocksAtOnce = 16;  // about as many rows
constexpr auto kLockTimeout = "55P03";
constexpr auto kAnalyzeKept =
    "analyze postrider.event_kept, postrider.attempt_kept, postrider.dead_letter_kept";

struct Commands {
  std::string detach, finalize, attach, drop, count_blocks, read, read_kept, copy;
};

Task<std::vector<Day>> old_days(pg::Link& link, std::string parent, std::chrono::seconds kept) {
  const auto rows = co_await link.run(sql::partitions{.parent = parent, .retain_seconds = kept.count()});
  std::vector<Day> found;
  for (const auto& row : rows)
    found.push_back({.parent = parent,
                     .name = std::string(row.name),
                     .date = std::string(row.date),
                     .low = row.low,
                     .high = row.high,
                     .is_attached = row.is_attached,
                     .is_detaching = row.is_detaching});
  co_return found;
}

Task<Commands> commands_of(pg::Link& link, const Day& day) {
  const auto rows = co_await link.run(sql::commands{.parent = day.parent, .partition = day.name});
  const auto row = rows.front();
  Commands commands{.detach = std::string(row.detach),
                    .finalize = std::string(row.finalize),
                    .attach = std::string(row.attach),
                    .drop = std::string(row.drop_table),
                    .count_blocks = std::string(row.count_blocks),
                    .read = std::string(row.read_rows),
                    .read_kept = std::string(row.read_kept.value_or("")),
                    .copy = std::string(row.copy.value_or(""))};
  co_return commands;
}

std::string start_of_block(int64_t block) {
  return "(" + std::to_string(block) + ",0)";
}

// The rows of a detached day, which does not change any more.
Task<int64_t> archive_day(pg::Link& link, const Commands& commands, ArchiveFile& file) {
  const pg::Rows size = co_await link.connection().execute(commands.count_blocks);
  const auto blocks = size.get<int64_t>(0, 0);
  int64_t lines = 0;
  for (int64_t block = 0; block < blocks; block += kBlocksAtOnce) {
    pg::Params params(start_of_block(block), start_of_block(block + kBlocksAtOnce));
    const pg::Rows rows = co_await link.connection().execute(commands.read, std::move(params));
    for (size_t i = 0; i < rows.size(); ++i) file.add_line(rows.get<std::string_view>(i, 0));
    lines += static_cast<int64_t>(rows.size());
  }
  co_return lines;
}

Task<int64_t> archive_kept(pg::Link& link, std::string read, ArchiveFile& file) {
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
  co_return lines;
}

Task<void> archive(pg::Link& link, const Day& day, const Commands& commands, const std::string& directory) {
  ArchiveFile file(directory, day.name);
  int64_t lines = co_await archive_day(link, commands, file);
  if (!commands.read_kept.empty()) lines += co_await archive_kept(link, commands.read_kept, file);
  file.finish();
  telemetry::log_info("partition_archived").field("file", file.path()).field("rows", lines);
}

Task<bool> is_held(pg::Link& link, const Day& day) {
  if (day.parent != "inbox") co_return false;
  const auto rows = co_await link.run(sql::inbox_held_by{.day = day.date});
  const auto by = rows.front().held_by;
  if (by) telemetry::log_info("partition_held").field("partition", day.name).field("by", *by);
  co_return by.has_value();
}

bool keeps_rows(const Day& day) {
  return day.parent != "inbox";
}

// False: it is a day of the inbox with rows that have to stay.
Task<bool> retire_one(pg::Link& link, const Day& day, const std::string& archive_dir, Retired& retired) {
  const Commands commands = co_await commands_of(link, day);
  int64_t kept = 0;
  if (day.is_detaching) {
    co_await link.connection().execute(commands.finalize);
  } else if (day.is_attached) {
    const bool has_to_stay = co_await is_held(link, day);
    if (has_to_stay) co_return false;
    if (keeps_rows(day)) kept += co_await move_needed(link, day);
    co_await link.connection().execute(commands.detach);
  }
  // The detach has waited for transactions that were using the day. These may have written to it: the event
  // of an old outbox row is there, and a replay may have been requested.
  const bool was_written = co_await is_held(link, day);
  if (was_written) {
    co_await link.connection().execute(commands.attach);
    co_return false;
  }
  if (keeps_rows(day)) kept += co_await copy_needed(link, day, commands.copy);
  if (!archive_dir.empty()) co_await archive(link, day, commands, archive_dir);
  co_await link.connection().execute(commands.drop);
  telemetry::log_info("partition_dropped").field("partition", day.name).field("rows_kept", kept);
  retired.kept += kept;
  co_return true;
}

// Some rows at a time until none is left, so that no snapshot is held for long.
template <class Statement>
Task<int64_t> trim(pg::Link& link, Statement statement) {
  int64_t deleted = 0, count = 0;
  do {
    const auto rows = co_await link.run(statement);
    count = rows.affected_rows();
    deleted += count;
  } while (count == kRowsAtOnce);
  co_return deleted;
}

Task<void> discard_dead_letters(pg::Link& link, int64_t retain_seconds) {
  int64_t count = 0;
  do {
    const auto rows =
        co_await link.run(sql::discard_dead_letters{.retain_seconds = retain_seconds, .rows = kRowsAtOnce});
    count = rows.front().discarded;
    if (count > 0) telemetry::log_warn("dead_letters_given_up").field("count", count);
  } while (count == kRowsAtOnce);
}

// Rows of tables that have no daily partitions.
Task<int64_t> trim_all(pg::Link& link, const RetentionOptions& options) {
  const int64_t attempts = options.attempts.count();
  const int64_t inbox = options.inbox.count(), audit = options.audit.count();
  const int64_t rollups = options.rollups.count();
  const KeptTimes times{options.events, options.attempts};
  int64_t deleted = co_await trim_kept(link, times);
  deleted += co_await trim(link, sql::trim_replays{.retain_seconds = attempts, .rows = kRowsAtOnce});
  deleted += co_await trim(link, sql::trim_pauses{.rows = kRowsAtOnce});
  deleted += co_await trim(link, sql::trim_brake_spans{.rows = kRowsAtOnce});
  deleted += co_await trim(link, sql::trim_unserved_spans{.rows = kRowsAtOnce});
  deleted += co_await trim(link, sql::trim_disabled_spans{.rows = kRowsAtOnce});
  deleted += co_await trim(link, sql::trim_subscription_spans{.rows = kRowsAtOnce});
  deleted += co_await trim(link, sql::trim_inbox_keys{.retain_seconds = inbox, .rows = kRowsAtOnce});
  deleted += co_await trim(link, sql::trim_inbox_contents{.retain_seconds = inbox, .rows = kRowsAtOnce});
  deleted += co_await trim(link, sql::trim_former_urls{.retain_seconds = attempts, .rows = kRowsAtOnce});
  deleted += co_await trim(link, sql::trim_audit{.retain_seconds = audit, .rows = kRowsAtOnce});
  deleted += co_await trim(link, sql::trim_rollups{.retain_seconds = rollups, .rows = kRowsAtOnce});
  deleted += co_await trim(link, sql::trim_closed_hours{.retain_seconds = rollups, .rows = kRowsAtOnce});
  co_return deleted;
}

// Detached days come first: the rows of other days may need theirs.
Task<std::vector<Day>> all_old_days(pg::Link& link, const RetentionOptions& options) {
  const std::vector<std::pair<std::string, std::chrono::seconds>> parents = {{"event", options.events},
                                                                             {"attempt", options.attempts},
                                                                             {"dead_letter", options.events},
                                                                             {"inbox", options.inbox}};
  std::vector<Day> days, attached;
  for (const auto& [parent, kept] : parents) {
    const std::vector<Day> old = co_await old_days(link, parent, kept);
    for (const Day& day : old) (day.is_attached && !day.is_detaching ? attached : days).push_back(day);
  }
  days.insert(days.end(), attached.begin(), attached.end());
  co_return days;
}

// A table that is locked by an open transaction is left to the next pass and does not delay the others. Its
// later days are left as well, because Postgres detaches one partition of a table at a time.
Task<void> retire_days(pg::Link& link, const std::vector<Day>& days, const std::string& archive_dir,
                       Retired& retired) {
  std::set<std::string> locked;
  for (const Day& day : days) {
    bool is_dropped = false;
    try {
      if (!locked.contains(day.parent)) is_dropped = co_await retire_one(link, day, archive_dir, retired);
    } catch (const pg::Error& error) {
      if (error.sqlstate() != kLockTimeout) throw;
      telemetry::log_warn("partition_locked").field("partition", day.name).field("error", error.what());
      locked.insert(day.parent);
    }
    is_dropped ? ++retired.dropped : ++retired.held;
  }
}

Task<Retired> retire_all(pg::Link& link, const RetentionOptions& options) {
  Retired retired;
  retired.is_pass = true;
  const int64_t events = options.events.count();
  const KeptTimes times{options.events, options.attempts};
  co_await raise_kept_since(link, times);
  co_await discard_dead_letters(link, events);
  retired.expiring = co_await expire_waiting(link, options.events);
  const int64_t inbox = options.inbox.count();
  retired.rows_deleted =
      co_await trim(link, sql::abandon_messages{.retain_seconds = inbox, .rows = kRowsAtOnce});
  const std::vector<Day> days = co_await all_old_days(link, options);
  co_await retire_days(link, days, options.archive_dir, retired);
  // A plan that was made while these tables were empty would scan them.
  if (retired.kept > 0) co_await link.connection().execute(kAnalyzeKept);
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

Task<Retired> retire(pg::Link& link, pg::LeaseRenewer& lease, RetentionOptions options) {
  Retired retired;
  auto taking = lease.start();
  const bool is_ours = co_await taking;
  if (!is_ours) co_return retired;
  std::exception_ptr error;
  try {
    auto pass = retire_all(link, options);
    retired = co_await pass;
  } catch (...) {
    error = std::current_exception();
  }
  auto releasing = lease.stop();
  co_await releasing;
  if (error) std::rethrow_exception(error);
  co_return retired;
}

}  // namespace postrider::upkeep
