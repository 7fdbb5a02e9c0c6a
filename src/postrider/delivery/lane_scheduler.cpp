#include "postrider/delivery/lane_scheduler.hpp"

#include <utility>

#include "postrider/telemetry/log.hpp"

namespace postrider::delivery {

namespace {

using namespace std::chrono_literals;

constexpr auto kHouseInterval = 1s;
constexpr auto kRestsBeyond = 1s;  // a lane that cannot send within this time gives its bodies back

bool needs_config(const Lane& lane, const Now& at) {
  const LaneConfig* const config = lane.config().get();
  return config == nullptr || (config->reload_at && *config->reload_at <= at.db) ||
         (config->look_up_at && *config->look_up_at <= at.steady);
}

}  // namespace

LaneScheduler::LaneScheduler(SchedulerTools tools) : tools_(tools), house_timer_(tools.loop) {
  house_timer_.call_after(kHouseInterval, [this] { keep_house(); });
}

void LaneScheduler::schedule(const LanePtr& lane) {
  if (lane->is_gone() || tools_.sender.is_stopping()) return;
  const Now at = now();
  if (needs_config(*lane, at)) tools_.loader.want_config(lane);
  if (!lane->config()) return;
  const LaneConfig& config = *lane->config();
  switch (config.mode) {
    case LaneConfig::Mode::send:
      for (const Turn turn : kBothTurns) schedule_turn(lane, turn, at);
      break;
    case LaneConfig::Mode::hold:
      // A look-up that is due was asked for above, and the lane is scheduled again when it is there.
      if (config.look_up_at && *config.look_up_at > at.steady) tools_.lanes.wake_at(lane, *config.look_up_at);
      lane->drop_rows();
      break;
    case LaneConfig::Mode::disable:
    case LaneConfig::Mode::cancel:
    case LaneConfig::Mode::clear:
      tools_.sweeper.sweep(lane);
      break;
  }
  tools_.lanes.note_work(*lane, at.steady);
}

void LaneScheduler::schedule_turn(const LanePtr& lane, Turn turn, const Now& at) {
  RowBuffer& buffer = lane->buffer(turn);
  const auto readiness = lane->readiness(turn, at);
  const bool is_resting = readiness.wait == Lane::Wait::time && readiness.until - at.steady > kRestsBeyond;
  if (is_resting) tools_.budget.rest(buffer);
  if (tools_.budget.needs_rows(buffer, is_resting)) tools_.loader.want_rows(lane);
  switch (readiness.wait) {
    case Lane::Wait::ready:
      tools_.sender.add(lane, turn);
      break;
    case Lane::Wait::body:
      tools_.loader.want_bodies(lane);
      break;
    case Lane::Wait::time:
      tools_.lanes.wake_at(lane, readiness.until);
      break;
    case Lane::Wait::event:
    case Lane::Wait::nothing:
      break;
  }
}

void LaneScheduler::configured(const LanePtr& lane, std::shared_ptr<const LaneConfig> config) {
  if (!config) {
    telemetry::log_error("endpoint_missing").field("endpoint_id", lane->endpoint.public_id());
    return;
  }
  const bool is_first = lane->tenant() == nullptr;
  const Now at = now();
  const registry::EndpointConfig& endpoint = config->endpoint;
  const TenantLimits limits{endpoint.tenant_max_in_flight, endpoint.tenant_rate_per_second};
  tools_.chooser.join(*lane, endpoint.tenant_id);
  tools_.chooser.set_limits(*lane->tenant(), limits, at.steady);
  lane->configure(std::move(config), at);
  if (is_first) tools_.endpoints.load(*lane);
  tools_.endpoints.note_hold(*lane);
  schedule(lane);
}

void LaneScheduler::keep_house() {
  house_timer_.call_after(kHouseInterval, [this] { keep_house(); });
  const auto at = base::BootClock::now();
  for (const LanePtr& lane : tools_.lanes.idle_lanes(at)) {
    tools_.endpoints.end_hold(*lane);
    tools_.lanes.forget(lane);
  }
  tools_.chooser.forget_unused_tenants();
  tools_.seen.forget_canceled(at);
  // Lanes that cannot send give rows back, now that others need the room.
  if (tools_.budget.is_short_of_rows())
    for (const auto& [id, lane] : tools_.lanes.lanes())
      if (lane->rows() > 2 * MemoryBudget::kRowsResting) schedule(lane);
  tools_.sender.send_soon();
}

}  // namespace postrider::delivery
