#include "postrider/delivery/report/in_flight_writer.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

#include "postrider/delivery/report/in_flight.sql.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::delivery {

using runtime::Task;

InFlightWriter::InFlightWriter(runtime::Loop& loop, pg::Link& link, model::NodeId node, Collect collect)
    : Service(loop), link_(link), node_(node), collect_(std::move(collect)) {}

Task<runtime::SteadyTime> InFlightWriter::pass(runtime::SteadyTime) {
  co_await collect_and_write();
  co_return base::BootClock::now() + kInterval;
}

Task<void> InFlightWriter::collect_and_write() {
  auto collecting = collect_();
  std::vector<InFlight> now = co_await collecting;
  std::sort(now.begin(), now.end());
  if (now == written_) co_return;
  auto writing = write(std::move(now));
  co_await writing;
}

Task<void> InFlightWriter::write(std::vector<InFlight> now) {
  pg::Batch batch;
  if (now.empty()) {
    batch.add(sql::clear_in_flight{.node = node_.uuid});
  } else {
    batch.add(sql::set_in_flight{
        .node = node_.uuid,
        .deliveries = std::views::transform(now, [](const InFlight& each) { return each.id.uuid; }),
        .buckets = std::views::transform(now, &InFlight::bucket)});
  }
  try {
    co_await link_.run(std::move(batch));
    written_ = std::move(now);
  } catch (const pg::Error& error) {  // the next pass, a second later, writes again
    if (error.kind() != pg::Kind::unavailable)
      telemetry::log_warn("in_flight_not_written").field("error", error.what());
  }
}

Task<void> InFlightWriter::finish() {
  if (written_.empty()) co_return;
  auto writing = write({});
  co_await writing;
}

}  // namespace postrider::delivery
