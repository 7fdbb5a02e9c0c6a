#include "postrider/delivery/lanes/choose.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "postrider/base/check.hpp"

namespace postrider::delivery {

namespace {
int index(Turn turn) {
  return static_cast<int>(turn);
}
}  // namespace

TenantTurn& Chooser::tenant(const model::TenantId& id) {
  auto& slot = tenants_[id];
  if (!slot) {
    slot = std::make_unique<TenantTurn>();
    slot->id = id;
  }
  return *slot;
}

void Chooser::set_limits(TenantTurn& tenant, const TenantLimits& limits, base::SteadyTime now) {
  tenant.limits = limits;
  tenant.max_in_flight.reset();
  if (limits.max_in_flight)
    tenant.max_in_flight = std::max(1, static_cast<int>(std::lround(*limits.max_in_flight * share_)));
  if (!limits.rate_per_second)
    tenant.rate.reset();
  else if (tenant.rate)
    tenant.rate->set_rate(*limits.rate_per_second * share_, now);
  else
    tenant.rate.emplace(*limits.rate_per_second * share_, now);
  unpark();  // the reason why it was set aside may be gone
}

void Chooser::set_share(double share, base::SteadyTime now) {
  share_ = share;
  set_brake_rates(now);
  for (const auto& [id, each] : tenants_) set_limits(*each, TenantLimits(each->limits), now);
}

void Chooser::set_brakes(const Brakes& brakes, base::SteadyTime now) {
  brakes_ = brakes;
  set_brake_rates(now);
}

void Chooser::set_brake_rates(base::SteadyTime now) {
  const auto set = [this, now](std::optional<base::TokenBucket>& bucket, const std::optional<double>& rate) {
    if (!rate)
      bucket.reset();
    else if (bucket)
      bucket->set_rate(*rate * share_, now);
    else
      bucket.emplace(*rate * share_, now);
  };
  set(retry_brake_, brakes_.retry_rate_per_second);
  set(drain_brake_, brakes_.drain_rate_per_second);
}

// Asked again when the next token is there.
bool Chooser::is_braked(std::optional<base::TokenBucket>& rate, base::SteadyTime now) {
  if (!rate) return false;
  const auto ready_at = rate->ready_at(now);
  if (ready_at <= now) return false;
  next_tenant_at_ = next_tenant_at_ ? std::min(*next_tenant_at_, ready_at) : ready_at;
  return true;
}

void Chooser::forget_unused_tenants() {
  std::erase_if(tenants_, [](const auto& entry) {
    const TenantTurn& tenant = *entry.second;
    return tenant.lanes == 0 && tenant.in_flight == 0 && !tenant.in_turn[0] && !tenant.in_turn[1];
  });
}

void Chooser::join(Lane& lane, const model::TenantId& id) {
  if (lane.tenant() != nullptr) return;
  lane.in_chooser_.tenant = &tenant(id);
  ++lane.tenant()->lanes;
}

void Chooser::leave(Lane& lane) {
  if (lane.tenant() != nullptr) --lane.tenant()->lanes;
}

void Chooser::add(const LanePtr& lane, Turn turn) {
  CHECK(lane->tenant() != nullptr);
  bool& listed = lane->in_chooser_.is_listed[index(turn)];
  if (listed) return;
  listed = true;
  lane->tenant()->ready[index(turn)].push_back(lane);
  enqueue(*lane->tenant(), turn);
}

void Chooser::enqueue(TenantTurn& tenant, Turn turn) {
  bool& listed = tenant.in_turn[index(turn)];
  if (listed) return;
  listed = true;
  turns_[index(turn)].push_back(&tenant);
}

std::optional<Chooser::Choice> Chooser::next(const Now& now, std::vector<LanePtr>& not_ready) {
  if (next_tenant_at_ && *next_tenant_at_ <= now.steady) unpark();
  if (is_full()) return std::nullopt;
  if (brakes_.is_paused || is_braked(drain_brake_, now.steady)) return std::nullopt;
  const bool is_retries_turn = ++choices_ % static_cast<unsigned>(limits_.retry_every) == 0;
  const Turn preferred = is_retries_turn ? Turn::retry : Turn::first;
  const Turn other = is_retries_turn ? Turn::first : Turn::retry;
  auto choice = next_of(preferred, now, not_ready);
  if (!choice) choice = next_of(other, now, not_ready);
  return choice;
}

// Round robin over the tenants that have a lane listed for this turn.
//
// Invariant: a tenant with a listed lane is in exactly one place, the queue or `parked_`; `in_turn` is true
// for both. A tenant that is taken from the queue leaves it (`in_turn` = false) and joins its end again in
// start() if it has further lanes, so the next choice goes to another tenant. A tenant that may not start
// keeps its lanes and is parked until unpark(): when a slot is freed, a limit changes, or its next token is
// due. Parking keeps this loop short: it visits each tenant at most once per call, and ready tenants do not
// wait for blocked ones.
std::optional<Chooser::Choice> Chooser::next_of(Turn turn, const Now& now, std::vector<LanePtr>& not_ready) {
  if (turn == Turn::retry &&
      (retries_in_flight_ >= limits_.retry_in_flight_max || is_braked(retry_brake_, now.steady)))
    return std::nullopt;
  auto& queue = turns_[index(turn)];
  while (!queue.empty()) {
    TenantTurn& tenant = *queue.front();
    queue.pop_front();
    if (!may_start(tenant, turn, now)) {
      parked_[index(turn)].push_back(&tenant);
      continue;
    }
    tenant.in_turn[index(turn)] = false;
    const LanePtr lane = next_ready_lane(tenant, turn, now, not_ready);
    if (lane) return start(tenant, lane, turn, now);
  }
  return std::nullopt;
}

// Null: none of the tenant's listed lanes is ready. They are not listed any more; add() lists them again.
LanePtr Chooser::next_ready_lane(TenantTurn& tenant, Turn turn, const Now& now,
                                 std::vector<LanePtr>& not_ready) {
  auto& lanes = tenant.ready[index(turn)];
  while (!lanes.empty()) {
    LanePtr lane = std::move(lanes.front());
    lanes.pop_front();
    lane->in_chooser_.is_listed[index(turn)] = false;
    if (lane->readiness(turn, now).wait == Lane::Wait::ready) return lane;
    not_ready.push_back(std::move(lane));
  }
  return nullptr;
}

Chooser::Choice Chooser::start(TenantTurn& tenant, const LanePtr& lane, Turn turn, const Now& now) {
  if (tenant.rate) tenant.rate->try_take(now.steady);
  if (drain_brake_) drain_brake_->try_take(now.steady);
  if (turn == Turn::retry && retry_brake_) retry_brake_->try_take(now.steady);
  const bool is_probe = lane->breaker().is_open();
  Choice choice{lane, turn, lane->start(turn, now), is_probe};
  ++in_flight_;
  ++tenant.in_flight;
  if (turn == Turn::retry) {
    ++retries_in_flight_;
    ++tenant.retries_in_flight;
  }
  bytes_in_flight_ += choice.row.body_bytes();
  tenant.bytes_in_flight += choice.row.body_bytes();
  // The next turn decides whether it is ready for another send.
  if (!lane->buffer(turn).empty()) add(lane, turn);
  if (!tenant.ready[index(turn)].empty()) enqueue(tenant, turn);
  return choice;
}

bool Chooser::has_slot(const TenantTurn& tenant, Turn turn) const {
  if (turn == Turn::retry && tenant.retries_in_flight >= limits_.retry_in_flight_max - retries_in_flight_)
    return false;
  const int free = limits_.in_flight_max - in_flight_;
  const size_t free_bytes = limits_.bytes_in_flight_max - bytes_in_flight_;
  if (tenant.in_flight >= free || tenant.bytes_in_flight > free_bytes) return false;
  return !tenant.max_in_flight || tenant.in_flight < *tenant.max_in_flight;
}

std::optional<WaitReason> Chooser::reason_to_wait(const Lane& lane, Turn turn, base::SteadyTime now) {
  const auto is_short = [now](std::optional<base::TokenBucket>& rate) {
    return rate && rate->ready_at(now) > now;
  };
  if (brakes_.is_paused || lane.tenant() == nullptr) return std::nullopt;
  if (is_short(drain_brake_) || (turn == Turn::retry && is_short(retry_brake_))) return WaitReason::brake;
  if (is_full() || (turn == Turn::retry && retries_in_flight_ >= limits_.retry_in_flight_max))
    return WaitReason::in_flight_cap;
  if (!has_slot(*lane.tenant(), turn)) return WaitReason::in_flight_cap;
  if (is_short(lane.tenant()->rate)) return WaitReason::rate;
  return std::nullopt;
}

bool Chooser::may_start(TenantTurn& tenant, Turn turn, const Now& now) {
  if (!has_slot(tenant, turn)) return false;
  if (!tenant.rate) return true;
  const auto ready_at = tenant.rate->ready_at(now.steady);
  if (ready_at <= now.steady) return true;
  next_tenant_at_ = next_tenant_at_ ? std::min(*next_tenant_at_, ready_at) : ready_at;
  return false;
}

void Chooser::unpark() {
  next_tenant_at_.reset();
  for (int turn = 0; turn < kTurns; ++turn) {
    turns_[turn].insert(turns_[turn].end(), parked_[turn].begin(), parked_[turn].end());
    parked_[turn].clear();
  }
}

void Chooser::finished(const Finished& send) {
  CHECK(in_flight_ > 0 && send.tenant.in_flight > 0);
  --in_flight_;
  --send.tenant.in_flight;
  if (send.turn == Turn::retry) {
    --retries_in_flight_;
    --send.tenant.retries_in_flight;
  }
  bytes_in_flight_ -= send.bytes;
  send.tenant.bytes_in_flight -= send.bytes;
  // Any parked tenant may use the freed slot. Those that still may not start are parked again at the next
  // choice. At worst this scans the parked tenants once per finished send, and only while slots are short.
  if (!parked_[0].empty() || !parked_[1].empty()) unpark();
}

}  // namespace postrider::delivery
