#include "postrider/inbox/rejections.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "postrider/inbox/rejections.sql.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::inbox {

void Rejections::count(const SourceId& source, const InboundRejection& rejection, base::Timestamp at) {
  metrics_.rejected.at(label(rejection.reason)).add();
  // At debug level only, because anyone who knows the URL could fill the log.
  telemetry::log_debug("inbox_rejected")
      .field("source", source)
      .field("reason", label(rejection.reason))
      .field("detail", rejection.detail);
  if (rejection.reason != RejectReason::unknown_source)
    add(source, label(rejection.reason), rejection.detail, at);
}

void Rejections::count_dropped(const SourceId& source, std::string detail, base::Timestamp at) {
  telemetry::log_debug("inbox_dropped_by_content").field("source", source).field("detail", detail);
  add(source, dropped_by_content, std::move(detail), at);
}

void Rejections::add(const SourceId& source, std::string_view reason, std::string detail,
                     base::Timestamp at) {
  const std::lock_guard lock(mutex_);
  Sum& sum = sums_[{source, reason}];
  ++sum.count;
  sum.last_at = at;
  sum.last_detail = std::move(detail);
}

void Rejections::add(const Sums& sums) {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, sum] : sums) {
    Sum& total = sums_[key];
    if (total.count == 0)
      total = sum;
    else
      total.count += sum.count;
  }
}

runtime::Task<void> Rejections::write(pg::Link& link) {
  Sums sums;
  {
    const std::lock_guard lock(mutex_);
    sums.swap(sums_);
  }
  if (sums.empty()) co_return;
  std::vector<std::string_view> sources, reasons, details;
  std::vector<int64_t> counts;
  std::vector<base::Timestamp> times;
  for (const auto& [key, sum] : sums) {
    sources.push_back(key.first);
    reasons.push_back(key.second);
    counts.push_back(sum.count);
    times.push_back(sum.last_at);
    details.push_back(sum.last_detail);
  }
  try {
    co_await link.run(sql::add_rejections{
        .sources = sources, .reasons = reasons, .counts = counts, .times = times, .details = details});
  } catch (const pg::Error& error) {
    if (error.kind() != pg::Kind::unknown) add(sums);  // better too few than counted twice
    throw;
  }
}

}  // namespace postrider::inbox
