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
constexpr auto kLockTimeout = "55P03";
constexpr auto kAnalyzeKept =
    "analyze postrider.event_kept, postrider.attempt_kept, postrider.dead_letter_kept";

struct Commands {
  std::string detach, finalize, attach, drop, read, read_kept, copy;
};

Task<std::vector<Day>> old_days(pg::Link& link, std::string parent, std::chrono::seconds kept) {
  pg::Params params(parent, int64_t{kept.count()});
  const pg::Rows rows = co_await link.run_one(sql::partitions, std::move(params));
  std::vector<Day> found;
  for (size_t i = 0; i < rows.size(); ++i)
    found.push_back({.parent = parent,
                     .name = rows.get<std::string>(i, 0),
                     .date = rows.get<std::string>(i, 1),
                     .low = rows.get<base::Uuid>(i, 2),
                     .high = rows.get<base::Uuid>(i, 3),
                     .is_attached = rows.get<bool>(i, 4),
                     .is_detaching = rows.get<bool>(i, 5)});
  co_return found;
}

Task<Commands> commands_of(pg::Link& link, const Day& day) {
  pg::Params params(day.parent, day.name);
  const pg::Rows row = co_await link.run_one(sql::commands, std::move(params));
  const auto text = [&row](size_t column) {
    return row.get<std::optional<std::string>>(0, column).value_or("");
  };
  Commands commands{text(0), text(1), text(2), text(3), text(4), text(5), text(6)};
  co_return commands;
}

Task<int64_t> archive_rows(pg::Link& link, std::string read, ArchiveFile& file) {
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
  int64_t lines = co_await archive_rows(link, commands.read, file);
  if (!commands.read_kept.empty()) lines += co_await archive_rows(link, commands.read_kept, file);
  file.finish();
  telemetry::log_info("partition_archived").field("file", file.path()).field("rows", lines);
}

Task<bool> is_held(pg::Link& link, const Day& day) {
  if (day.parent != "inbox") co_return false;
  pg::Params which(day.date);
  const pg::Rows held = co_await link.run_one(sql::inbox_held_by, std::move(which));
  const auto by = held.get<std::optional<std::string>>(0, 0);
  if (by) telemetry::log_info("partition_held").field("partition", day.name).field("by", *by);
  co_return by.has_value();
}

bool keeps_rows(const Day& day) {
  return day.parent != "inbox";
}

// False: it is a day of the inbox, and something is in it that has to stay.
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
  // The detach has waited for transactions that were using the day: an old outbox row has its event there,
  // and a replay may have been requested meanwhile.
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
  const int64_t attempts = options.attempts.count();
  const int64_t inbox = options.inbox.count(), audit = options.audit.count();
  const int64_t rollups = options.rollups.count();
  const KeptTimes times{options.events, options.attempts};
  int64_t deleted = co_await trim_kept(link, times);
  deleted += co_await trim(link, sql::trim_replays, attempts);
  deleted += co_await trim(link, sql::trim_pauses);
  deleted += co_await trim(link, sql::trim_disabled_spans);
  deleted += co_await trim(link, sql::trim_subscription_spans);
  deleted += co_await trim(link, sql::trim_inbox_keys, inbox);
  deleted += co_await trim(link, sql::trim_inbox_contents, inbox);
  deleted += co_await trim(link, sql::trim_audit, audit);
  deleted += co_await trim(link, sql::trim_rollups, rollups);
  deleted += co_await trim(link, sql::trim_closed_hours, rollups);
  co_return deleted;
}

// Those that are detached already come first: rows of them may be needed by what is found in the others.
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

// A table that someone's open transaction keeps locked waits for the next pass; the others do not wait for
// it. Its later days wait, too: Postgres detaches one partition of a table at a time.
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
  co_await give_up_dead_letters(link, events);
  retired.expiring = co_await expire_waiting(link, options.events);
  const int64_t inbox = options.inbox.count();
  retired.rows_deleted = co_await trim(link, sql::abandon_messages, inbox);
  const std::vector<Day> days = co_await all_old_days(link, options);
  co_await retire_days(link, days, options.archive_dir, retired);
  // A plan that was made while they were empty reads them from end to end.
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

Task<Retired> retire(pg::Link& link, pg::LeaseKeeper& lease, RetentionOptions options) {
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
