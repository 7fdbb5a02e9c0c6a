#include "postrider/delivery/in_flight_writer.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

#include "postrider/delivery/in_flight.sql.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::delivery {

using runtime::Task;

InFlightWriter::InFlightWriter(runtime::Loop& loop, pg::Link& link, model::NodeId node, Collect collect)
    : link_(link), node_(node), collect_(std::move(collect)), wakeup_(loop) {}

void InFlightWriter::start() {
  tasks_.spawn(run());
}

Task<void> InFlightWriter::run() {
  while (!is_stopping_) {
    co_await wakeup_.wait_for(kInterval);
    if (is_stopping_) break;
    auto pass = run_once();
    co_await pass;
  }
}

Task<void> InFlightWriter::run_once() {
  auto collecting = collect_();
  std::vector<InFlight> now = co_await collecting;
  std::sort(now.begin(), now.end());
  if (now == said_) co_return;
  auto writing = write(std::move(now));
  co_await writing;
}

Task<void> InFlightWriter::write(std::vector<InFlight> now) {
  pg::Batch batch;
  if (now.empty()) {
    batch.with(sql::clear_in_flight, node_.uuid);
  } else {
    pg::Params params;
    params.add(node_.uuid)
        .add(std::views::transform(now, [](const InFlight& each) { return each.id.uuid; }))
        .add(std::views::transform(now, [](const InFlight& each) { return each.bucket; }));
    batch.add(sql::set_in_flight, std::move(params));
  }
  try {
    co_await link_.run(std::move(batch));
    said_ = std::move(now);
  } catch (const pg::Error& error) {  // said again a second later
    if (error.kind() != pg::Kind::unavailable)
      telemetry::log_warn("in_flight_not_written").field("error", error.what());
  }
}

Task<void> InFlightWriter::stop() {
  is_stopping_ = true;
  wakeup_.notify();
  co_await tasks_.join();
  if (said_.empty()) co_return;
  auto writing = write({});
  co_await writing;
}

}  // namespace postrider::delivery
