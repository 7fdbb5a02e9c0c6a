#include "postrider/upkeep/upkeep.hpp"

#include <algorithm>
#include <exception>
#include <string_view>
#include <utility>

#include "postrider/base/check.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/telemetry/log.hpp"
#include "postrider/upkeep/upkeep.sql.hpp"

namespace postrider::upkeep {

namespace {
using namespace std::chrono_literals;
constexpr auto kInterval = 1s;
constexpr auto kHourPostponed = 24h;
constexpr auto kRetentionStall = 60s;

// Often enough for each stage to be seen in its time.
std::chrono::seconds health_interval(const HealthOptions& options) {
  return std::clamp<std::chrono::seconds>(
      std::min(options.disable_after / 200, options.first_notice_after / 10), 1s, 60s);
}

// Another node was creating the same day. This one has waited for it, and now the day exists.
bool was_created_by_another_node(const pg::Error& error) {
  constexpr std::string_view kUniqueViolation = "23505", kDuplicateTable = "42P07",
                             kDuplicateObject = "42710";
  const std::string& state = error.sqlstate();
  return state == kUniqueViolation || state == kDuplicateTable || state == kDuplicateObject;
}

// False: it exists already.
runtime::Task<bool> create_partition(pg::Link& link, std::string parent, std::string day) {
  try {
    const auto rows = co_await link.run(sql::create_partition{.parent = parent, .day = day});
    co_return rows.front().is_new;
  } catch (const pg::Error& error) {
    if (!was_created_by_another_node(error)) throw;
  }
  co_return false;
}

// This is not a lock or a lost connection: the hour takes too long, or its data is wrong.
bool is_caused_by_hour(const pg::Error& error) {
  constexpr std::string_view kStatementTimeout = "57014";
  return error.kind() == pg::Kind::item || error.kind() == pg::Kind::other ||
         error.sqlstate() == kStatementTimeout;
}
}  // namespace

void UpkeepOptions::validate() const {
  health.validate();
}

runtime::Task<int> create_partitions(pg::Link& link, int days_back) {
  const auto missing =
      co_await link.run(sql::missing_partitions{.days_back = days_back, .days_ahead = kPartitionDaysAhead});
  int made = 0;
  for (const auto& row : missing) {
    auto task = create_partition(link, std::string(row.parent), std::string(row.day));
    const bool is_new = co_await task;
    if (is_new) ++made;
  }
  if (made > 0) telemetry::log_info("partitions_made").field("count", made);
  co_return made;
}

Upkeep::Upkeep(runtime::Loop& loop, pg::Link& link, const telemetry::Metrics& metrics, UpkeepOptions options)
    : Service(loop),
      link_(link),
      retention_lease_(link, {.name = kRetentionLease, .stall = kRetentionStall}),
      retention_renewer_(loop, retention_lease_),
      metrics_(metrics),
      options_(runtime::validated(std::move(options))) {
  routines_ = {
      {"partitions", 1h, [this] { return keep_partitions(); }},
      {"logs", 60s, [this] { return trim_logs(); }},
      {"gauges", 5s, [this] { return read_gauges(); }},
      {"endpoints", 60s, [this] { return count_endpoints(); }},
      {"statistics", 1h, [this] { return analyze_parents(); }},
      {"health", health_interval(options_.health), [this] { return notify_of_health(); }},
      {"degraded", 5 * health_interval(options_.health), [this] { return notify_of_degraded(); }},
      {"dead_letters", 10s, [this] { return notify_of_dead_letters(); }},
      {"retention", 600s, [this] { return drop_old(); }},
      {"rollups", 60s, [this] { return close_hours(); }},
      {"dead_letter_counts", 60s, [this] { return add_up_dead_letters(); }},
  };
}

runtime::Task<runtime::SteadyTime> Upkeep::pass(runtime::SteadyTime now) {
  for (Routine& routine : routines_) {
    if (is_stopping() || now < routine.due || !link_.is_up()) continue;
    routine.due = now + routine.interval;
    try {
      auto task = routine.run();
      co_await task;
    } catch (const std::exception& error) {
      if (is_stopping()) break;
      // A lock timeout is normal: retry soon, not after the full interval.
      routine.due = now + std::min<std::chrono::nanoseconds>(routine.interval, 30s);
      telemetry::log_warn("upkeep_failed").field("routine", routine.name).field("error", error.what());
    }
  }
  co_return base::BootClock::now() + kInterval;
}

runtime::Task<void> Upkeep::keep_partitions() {
  co_await create_partitions(link_, days_back(options_.retention));
}

runtime::Task<void> Upkeep::notify_of_health() {
  co_await report_health(link_, options_.health);
}

runtime::Task<void> Upkeep::notify_of_degraded() {
  if (options_.health.degraded_below == 0) co_return;
  co_await report_degraded(link_, options_.health);
}

runtime::Task<void> Upkeep::notify_of_dead_letters() {
  co_await report_dead_letters(link_);
}

runtime::Task<void> Upkeep::drop_old() {
  const Retired retired = co_await retire(link_, retention_renewer_, options_.retention);
  metrics_.retention_kept.add(static_cast<double>(retired.kept));
  if (retired.is_pass) metrics_.retention_expiring.set(static_cast<double>(retired.expiring));
}

runtime::Task<void> Upkeep::trim_logs() {
  co_await link_.run(sql::trim_publish_log{});
  co_await link_.run(sql::trim_control_log{});
  co_await link_.run(sql::trim_contact_links{});
  co_await link_.run(sql::trim_lane_waits{});
  co_await link_.run(sql::trim_mail_budgets{});
  co_await link_.run(sql::forget_dead_nodes{});
}

runtime::Task<void> Upkeep::read_gauges() {
  const auto depth = co_await link_.run(sql::queue_depth{});
  if (!depth.empty()) metrics_.queue_rows.set(static_cast<double>(depth.front().deliveries));
}

runtime::Task<void> Upkeep::count_endpoints() {
  const auto rows = co_await link_.run(sql::endpoints_by_status{});
  for (const char* status : {"active", "paused", "disabled"}) metrics_.endpoints.at(status).set(0);
  for (const auto& row : rows)
    if (const auto* of_status = metrics_.endpoints.find(row.status))
      of_status->set(static_cast<double>(row.endpoints));
}

runtime::Task<void> Upkeep::analyze_parents() {
  const auto stale = co_await link_.run(sql::stale_statistics{});
  for (const auto& row : stale) {
    const std::string command = "analyze postrider." + std::string(row.relname);
    co_await link_.connection().execute(command);
  }
  if (!stale.empty()) co_await link_.run(sql::summarize_ended_days{});
}

std::vector<base::Timestamp> Upkeep::postponed_hours() {
  std::erase_if(postponed_, [](const auto& entry) { return entry.second <= base::BootClock::now(); });
  std::vector<base::Timestamp> hours;
  for (const auto& [hour, until] : postponed_) hours.push_back(hour);
  return hours;
}

// One hour at a time, each in its own transaction. An hour that cannot be closed is postponed, so that it
// neither delays the hours after it nor keeps the database busy. Until then it has the counts that the nodes
// have written.
runtime::Task<void> Upkeep::close_hours() {
  const std::vector<base::Timestamp> postponed = postponed_hours();
  const auto rows = co_await link_.run(sql::hours_to_close{.postponed = postponed});
  for (const auto& row : rows) {
    if (is_stopping()) break;
    const base::Timestamp hour = row.hour;
    try {
      co_await link_.run(sql::close_hour{.hour = hour});
    } catch (const pg::Error& error) {
      if (!is_caused_by_hour(error)) throw;
      postponed_[hour] = base::BootClock::now() + kHourPostponed;
      telemetry::log_warn("rollup_hour_postponed")
          .field("hour", base::to_rfc3339(hour))
          .field("error", error.what());
    }
  }
}

runtime::Task<void> Upkeep::add_up_dead_letters() {
  co_await link_.run(sql::add_up_dead_letters{});
}

runtime::Task<void> Upkeep::interrupt() {
  co_await link_.stop();
}

}  // namespace postrider::upkeep
