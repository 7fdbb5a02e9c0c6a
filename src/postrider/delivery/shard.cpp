#include "postrider/delivery/shard.hpp"

#include <algorithm>
#include <utility>

#include "postrider/telemetry/log.hpp"

namespace postrider::delivery {

Shard::Shard(ShardTools tools, ShardOptions options)
    : tools_(tools),
      budget_(options.memory),
      chooser_(options.chooser),
      lanes_(tools.loop, tools.metrics, {options.buckets_total, options.breaker}, budget_.totals(), chooser_,
             *this),
      endpoint_writer_(tools.loop, tools.link, options.node_id),
      endpoints_(endpoint_writer_),
      loader_({tools.loop, tools.link, tools.client, tools.keys, tools.clock, tools.metrics, budget_, seen_,
               tools.secrets},
              options.loader, *this),
      reader_({tools.loop, tools.link, tools.clock, lanes_, budget_, seen_}, options.reader, *this),
      sweeper_({tools.loop, tools.link, tools.metrics, loader_}, options.node_id, *this),
      settler_(tools.loop, tools.link, tools.metrics,
               {.node_id = options.node_id, .batch_items_max = options.settle_batch_items_max}),
      sender_({tools.loop, tools.client, tools.lease, tools.clock, tools.metrics, chooser_, endpoints_,
               settler_, budget_},
              options.sender, *this),
      scheduler_({tools.loop, tools.clock, budget_, seen_, lanes_, chooser_, endpoints_, loader_, sweeper_,
                  sender_}),
      expirer_({tools.loop, tools.link, lanes_, sender_}),
      drain_(tools.loop, lanes_, *this),
      control_(lanes_, seen_, *this) {}

Shard::~Shard() = default;

// ── buckets ──

void Shard::take_bucket(int bucket, int64_t epoch) {
  lanes_.add_bucket(bucket, epoch);
  drain_.look(bucket);  // an earlier lease of it is over
  reader_.read(bucket);
}

void Shard::drop_bucket(int bucket) {
  lanes_.remove_bucket(bucket);
  drain_.look(bucket);
}

void Shard::drop_everything(int64_t term) {
  lanes_.remove_all_buckets();
  sender_.begin_term(term);
  drain_.look_at_all();
}

runtime::Task<bool> Shard::drain_bucket(int bucket, std::chrono::milliseconds patience) {
  return drain_.drain(bucket, patience);
}

// ── work ──

void Shard::changed(const LanePtr& lane) {
  control_.changed(*lane);
  scheduler_.schedule(lane);
  expirer_.changed(lane);
}

void Shard::became_idle(const Lane& lane) {
  if (lane.is_draining()) drain_.look(lane.bucket);
}

void Shard::configured(const LanePtr& lane, std::shared_ptr<const LaneConfig> config) {
  scheduler_.configured(lane, std::move(config));
}

void Shard::body_missing(const LanePtr& lane, QueueRow row) {
  telemetry::log_error("event_body_missing")
      .field("delivery_id", row.id().public_id())
      .field("endpoint_id", lane->endpoint.public_id());
  sender_.dead_letter(lane, std::move(row), delivery::body_missing(tools_.clock.now()));
}

void Shard::cancel_delivery(model::EndpointId endpoint, model::DeliveryId delivery) {
  control_.cancel(endpoint, delivery);
}

void Shard::expedite_delivery(model::EndpointId endpoint, model::DeliveryId delivery) {
  control_.expedite(endpoint, delivery);
}

void Shard::set_brakes(const Brakes& brakes) {
  chooser_.set_brakes(brakes, base::BootClock::now());
  sender_.send_soon();
}

// ── the registry changed ──

void Shard::refresh_endpoint(model::EndpointId endpoint) {
  if (const LanePtr lane = lanes_.find(endpoint)) loader_.want_config(lane);
}

void Shard::refresh_tenant(const model::TenantId& tenant) {
  for (const auto& [id, lane] : lanes_.lanes())
    if (lane->tenant() == nullptr || lane->tenant()->id == tenant) loader_.want_config(lane);
}

void Shard::refresh_all() {
  for (const auto& [id, lane] : lanes_.lanes()) loader_.want_config(lane);
}

namespace {

bool concerns(const registry::ChangedEndpoints& changed, const Lane& lane) {
  const auto& config = lane.config();
  if (!config) return true;  // being loaded, perhaps as it was before
  return config->endpoint.tenant_id == changed.tenant &&
         (changed.endpoint.empty() || config->endpoint.public_id == changed.endpoint);
}

}  // namespace

runtime::Task<void> Shard::take_effect(registry::ChangedEndpoints changed, base::SteadyTime deadline) {
  std::vector<LanePtr> lanes;
  for (const auto& [id, lane] : lanes_.lanes())
    if (concerns(changed, *lane)) lanes.push_back(lane);
  return loader_.reload_configs(std::move(lanes), deadline);
}

// ── ending ──

void Shard::stop_sending() {
  sender_.stop_sending();
  drain_.stop();
  reader_.abandon();
  sweeper_.abandon();
  expirer_.abandon();
}

runtime::Task<void> Shard::drain(base::SteadyTime deadline) {
  co_await sender_.drain(deadline);
  co_await settler_.drain(deadline);
  co_await endpoint_writer_.drain(deadline);
}

runtime::Task<void> Shard::cut_off() {
  stop_sending();
  tools_.client.close();
  co_return;
}

runtime::Task<void> Shard::stop() {
  co_await cut_off();
  settler_.abandon();
  endpoint_writer_.abandon();
  loader_.abandon();
  co_await tools_.link.stop();
  co_await settler_.stop();
  co_await endpoint_writer_.stop();
  co_await loader_.stop();
  co_await reader_.stop();
  co_await sweeper_.stop();
  co_await expirer_.stop();
  scheduler_.stop();
  lanes_.stop();
  co_await sender_.stop();
}

// ── what can be seen ──

std::vector<LaneWait> Shard::lane_waits() {
  return waits_.sample(lanes_.lanes(), chooser_, {base::BootClock::now(), tools_.clock.now()});
}

Shard::Gauges Shard::gauges() const {
  Gauges gauges{.processing = chooser_.in_flight(), .waiting = {}};
  const base::Timestamp now = tools_.clock.now();
  for (const auto& [id, lane] : lanes_.lanes()) gauges.waiting.add(*lane, now, chooser_.is_paused());
  return gauges;
}

}  // namespace postrider::delivery
