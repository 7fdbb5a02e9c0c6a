#include "postrider/outbox/held_tenants.hpp"

#include <algorithm>

namespace postrider::outbox {

namespace {

using std::chrono::milliseconds;

constexpr base::Backoff::Limits kPauses{milliseconds(250), milliseconds(5'000)};
constexpr int kRowsMin = 10;

}  // namespace

bool HeldTenants::hold(const std::string& tenant, Position first, base::SteadyTime now) {
  const auto found = held_.find(tenant);
  if (found == held_.end() && held_.size() >= kMax) return false;
  const auto [at, is_new] = held_.try_emplace(tenant, Held{first, {}, base::Backoff(kPauses), kRowsMin});
  Held& held = at->second;
  held.from = std::min(held.from, first);
  if (is_new) held.due_at = now + held.pauses.next();
  return true;
}

void HeldTenants::skip_from(Position position) {
  for (auto& [tenant, held] : held_) held.from = std::min(held.from, position);
}

std::optional<HeldTenants::Turn> HeldTenants::next(base::SteadyTime now) const {
  const auto is_earlier = [](const auto& a, const auto& b) { return a.second.due_at < b.second.due_at; };
  const auto first = std::min_element(held_.begin(), held_.end(), is_earlier);
  if (first == held_.end() || first->second.due_at > now) return std::nullopt;
  return Turn{first->first, first->second.from, std::min(first->second.rows, rows_max_)};
}

void HeldTenants::moved(const std::string& tenant, Moved moved, base::SteadyTime now) {
  const auto found = held_.find(tenant);
  if (found == held_.end()) return;
  Held& held = found->second;
  held.from = moved.next;
  if (moved.published > 0) held.pauses.reset();
  held.rows = std::clamp(2 * (moved.is_throttled ? moved.published : held.rows), kRowsMin,
                         std::max(kRowsMin, rows_max_));
  held.due_at = moved.is_throttled ? now + held.pauses.next() : now;
}

std::vector<std::string> HeldTenants::names() const {
  std::vector<std::string> names;
  for (const auto& [tenant, held] : held_) names.push_back(tenant);
  return names;
}

std::optional<base::SteadyTime> HeldTenants::due_at() const {
  std::optional<base::SteadyTime> due_at;
  for (const auto& [tenant, held] : held_) due_at = std::min(due_at.value_or(held.due_at), held.due_at);
  return due_at;
}

}  // namespace postrider::outbox
