#include "postrider/api/wire/shares.hpp"

#include <fmt/format.h>

#include <chrono>

namespace postrider::api {

Shares::Room Shares::room_for(const std::string& holder) const {
  const auto found = by_holder_.find(holder);
  if (found != by_holder_.end() && found->second >= limits_.each) return Room::share_used_up;
  return taken_ < limits_.total ? Room::free : Room::full;
}

Shares::Place Shares::take(std::string holder) {
  ++taken_;
  ++by_holder_[holder];
  return Place(*this, std::move(holder));
}

Shares::Place::~Place() {
  if (shares_) shares_->give_back(holder_);
}

void Shares::give_back(const std::string& holder) {
  --taken_;
  const auto found = by_holder_.find(holder);
  if (--found->second == 0) by_holder_.erase(found);
}

std::string holder_of(const registry::Principal& principal) {
  return principal.tenant ? "tenant " + *principal.tenant : "key " + principal.key.public_id();
}

http::Problem no_room(const Shares& shares, Shares::Room room, const registry::Principal& principal,
                      std::string_view what) {
  http::Problem problem;
  problem.type = fmt::format("too-many-{}", what);
  if (room == Shares::Room::share_used_up) {
    problem.status = 429;
    problem.detail =
        fmt::format("This {} has {} {} in progress, which is the limit. Wait until one has ended.",
                    principal.tenant ? "tenant" : "API key", shares.limits().each, what);
    problem.retry_after = std::chrono::seconds(1);
  } else {
    problem.status = 503;
    problem.detail = fmt::format("The server has {} {} in progress, which is the limit. Try again later.",
                                 shares.limits().total, what);
    problem.retry_after = std::chrono::seconds(5);
  }
  return problem;
}

}  // namespace postrider::api
