#include "postrider/outbox/stuck.hpp"

#include "postrider/base/json_writer.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/outbox/stuck.sql.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::outbox {

namespace {

constexpr std::chrono::seconds kInterval{60};
constexpr size_t kShownMax = 10;

}  // namespace

void StuckCounts::add(const std::vector<SetAside>& rows) {
  for (const SetAside& row : rows) {
    if (row.tenant_id == model::kReservedTenant) continue;  // no events about this tenant itself
    ++rows_;
    if (first_.size() < kShownMax) first_.push_back(row);
  }
}

std::optional<std::string> StuckCounts::due(base::SteadyTime now) const {
  if (rows_ == 0 || (reported_at_ && now - *reported_at_ < kInterval)) return std::nullopt;
  std::vector<std::string> shown;
  for (const SetAside& row : first_) {
    base::JsonObject each;
    each.add("row", row.id).add("tenant_id", row.tenant_id).add("type", row.type).add("error", row.error);
    shown.push_back(each.text());
  }
  base::JsonObject data;
  data.add("outbox", outbox_).add("rows", rows_).raw("first", base::json_array(shown));
  return data.text();
}

void StuckCounts::told(base::SteadyTime now) {
  reported_at_ = now;
  rows_ = 0;
  first_.clear();
}

runtime::Task<void> StuckReporter::report() {
  const auto now = base::BootClock::now();
  const auto data = counts_.due(now);
  if (!data) co_return;
  try {
    co_await link_.run(sql::report_stuck{.data = *data});
    counts_.told(now);
  } catch (const pg::Error& error) {
    telemetry::log_debug("outbox_stuck_not_told").field("error", error.what());
  }
}

}  // namespace postrider::outbox
