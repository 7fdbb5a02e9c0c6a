#include "postrider/upkeep/upkeep.hpp"

#include <algorithm>
#include <exception>
#include <string_view>
#include <utility>

#include "postrider/pg/error.hpp"
#include "postrider/telemetry/log.hpp"
#include "postrider/upkeep/health.hpp"
#include "postrider/upkeep/upkeep.sql.hpp"

namespace postrider::upkeep {

namespace {
using namespace std::chrono_literals;
constexpr auto kPass = 1s;
constexpr auto kHourPutOff = 24h;
constexpr auto kRetentionStall = 60s;

// Often enough for each stage to be seen in its time.
std::chrono::seconds health_interval(std::chrono::seconds disable_after) {
  return std::clamp<std::chrono::seconds>(disable_after / 200, 1s, 60s);
}

// Another node was making the same day: this one waited for it, and now it is there.
bool is_made_by_another(const pg::Error& error) {
  constexpr std::string_view kUniqueViolation = "23505", kDuplicateTable = "42P07",
                             kDuplicateObject = "42710";
  const std::string& state = error.sqlstate();
  return state == kUniqueViolation || state == kDuplicateTable || state == kDuplicateObject;
}

// False: it is there already.
runtime::Task<bool> make_partition(pg::Link& link, std::string parent, std::string day) {
  try {
    pg::Params which(parent, day);
    const pg::Rows row = co_await link.run_one(sql::make_partition, std::move(which));
    co_return row.get<bool>(0, 0);
  } catch (const pg::Error& error) {
    if (!is_made_by_another(error)) throw;
  }
  co_return false;
}

// Not a lock or a connection that was lost: the hour takes too long, or something in it is wrong.
bool is_hours_fault(const pg::Error& error) {
  constexpr std::string_view kStatementTimeout = "57014";
  return error.kind() == pg::Kind::item || error.kind() == pg::Kind::other ||
         error.sqlstate() == kStatementTimeout;
}
}  // namespace

runtime::Task<int> make_partitions(pg::Link& link, int days_back) {
  pg::Params range(days_back, kPartitionDaysAhead);
  const pg::Rows missing = co_await link.run_one(sql::missing_partitions, std::move(range));
  int made = 0;
  for (size_t i = 0; i < missing.size(); ++i) {
    auto task = make_partition(link, missing.get<std::string>(i, 0), missing.get<std::string>(i, 1));
    const bool is_new = co_await task;
    if (is_new) ++made;
  }
  if (made > 0) telemetry::log_info("partitions_made").field("count", made);
  co_return made;
}

Upkeep::Upkeep(runtime::Loop& loop, pg::Link& link, telemetry::Metrics& metrics, UpkeepOptions options)
    : link_(link),
      retention_lease_(link, {.name = kRetentionLease, .stall = kRetentionStall}),
      retention_keeper_(loop, retention_lease_),
      metrics_(metrics),
      options_(std::move(options)),
      wakeup_(loop) {
  duties_ = {
      {"partitions", 1h, [this] { return keep_partitions(); }},
      {"logs", 60s, [this] { return trim_logs(); }},
      {"gauges", 5s, [this] { return read_gauges(); }},
      {"endpoints", 60s, [this] { return count_endpoints(); }},
      {"statistics", 1h, [this] { return analyze_parents(); }},
      {"health", health_interval(options_.disable_after), [this] { return tell_health(); }},
      {"dead_letters", 10s, [this] { return tell_dead_letters(); }},
      {"retention", 600s, [this] { return drop_old(); }},
      {"rollups", 60s, [this] { return close_hours(); }},
      {"dead_letter_counts", 60s, [this] { return add_up_dead_letters(); }},
  };
}

void Upkeep::start() {
  tasks_.spawn(run());
}

runtime::Task<void> Upkeep::run() {
  while (!is_stopping_) {
    co_await run_once(base::BootClock::now());
    if (!is_stopping_) co_await wakeup_.wait_for(kPass);
  }
}

runtime::Task<void> Upkeep::run_once(base::SteadyTime now) {
  for (Duty& duty : duties_) {
    if (is_stopping_ || now < duty.due || !link_.is_up()) continue;
    duty.due = now + duty.interval;
    try {
      auto task = duty.run();
      co_await task;
    } catch (const std::exception& error) {
      if (is_stopping_) co_return;
      // A lock that could not be had in time is normal; soon again, not at the next full interval.
      duty.due = now + std::min<std::chrono::nanoseconds>(duty.interval, 30s);
      telemetry::log_warn("upkeep_failed").field("duty", duty.name).field("error", error.what());
    }
  }
}

runtime::Task<void> Upkeep::keep_partitions() {
  co_await make_partitions(link_, days_back(options_.retention));
}

runtime::Task<void> Upkeep::tell_health() {
  co_await report_health(link_, options_.disable_after);
}

runtime::Task<void> Upkeep::tell_dead_letters() {
  co_await report_dead_letters(link_);
}

runtime::Task<void> Upkeep::drop_old() {
  const Retired retired = co_await retire(link_, retention_keeper_, options_.retention);
  metrics_.retention_kept.add(static_cast<double>(retired.kept));
  if (retired.is_pass) metrics_.retention_expiring.set(static_cast<double>(retired.expiring));
}

runtime::Task<void> Upkeep::trim_logs() {
  co_await link_.run_one(sql::trim_publish_log);
  co_await link_.run_one(sql::trim_control_log);
  co_await link_.run_one(sql::trim_contact_links);
  co_await link_.run_one(sql::trim_mail_budgets);
  co_await link_.run_one(sql::forget_dead_nodes);
}

runtime::Task<void> Upkeep::read_gauges() {
  const pg::Rows depth = co_await link_.run_one(sql::queue_depth);
  if (!depth.empty()) metrics_.queue_depth.at("pending").set(static_cast<double>(depth.get<int64_t>(0, 0)));
}

runtime::Task<void> Upkeep::count_endpoints() {
  const pg::Rows rows = co_await link_.run_one(sql::endpoints_by_status);
  for (const char* status : {"active", "paused", "disabled"}) metrics_.endpoints.at(status).set(0);
  for (size_t i = 0; i < rows.size(); ++i)
    if (const auto* of_status = metrics_.endpoints.find(rows.get<std::string_view>(i, 0)))
      of_status->set(static_cast<double>(rows.get<int64_t>(i, 1)));
}

runtime::Task<void> Upkeep::analyze_parents() {
  const pg::Rows stale = co_await link_.run_one(sql::stale_statistics);
  for (size_t i = 0; i < stale.size(); ++i) {
    const std::string command = "analyze postrider." + stale.get<std::string>(i, 0);
    co_await link_.connection().execute(command);
  }
}

std::vector<base::Timestamp> Upkeep::hours_put_off() {
  std::erase_if(put_off_, [](const auto& entry) { return entry.second <= base::BootClock::now(); });
  std::vector<base::Timestamp> hours;
  for (const auto& [hour, until] : put_off_) hours.push_back(hour);
  return hours;
}

// One hour at a time, each its own transaction. One that cannot be closed is put off, so that those behind it
// have their turn and the database is not kept busy with it; until then its counts are what nodes have
// counted.
runtime::Task<void> Upkeep::close_hours() {
  pg::Params but(hours_put_off());
  const pg::Rows hours = co_await link_.run_one(sql::hours_to_close, std::move(but));
  for (size_t i = 0; i < hours.size() && !is_stopping_; ++i) {
    const auto hour = hours.get<base::Timestamp>(i, 0);
    pg::Params params(hour);
    try {
      co_await link_.run_one(sql::close_hour, std::move(params));
    } catch (const pg::Error& error) {
      if (!is_hours_fault(error)) throw;
      put_off_[hour] = base::BootClock::now() + kHourPutOff;
      telemetry::log_warn("rollup_hour_put_off")
          .field("hour", base::to_rfc3339(hour))
          .field("error", error.what());
    }
  }
}

runtime::Task<void> Upkeep::add_up_dead_letters() {
  co_await link_.run_one(sql::add_up_dead_letters);
}

runtime::Task<void> Upkeep::stop() {
  is_stopping_ = true;
  wakeup_.notify();
  co_await link_.stop();
  co_await tasks_.join();
}

}  // namespace postrider::upkeep
