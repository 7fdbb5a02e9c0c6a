#include "postrider/http/server/body_budget.hpp"

#include "postrider/base/check.hpp"

namespace postrider::http {

bool BodyBudget::take(const std::string& owner, size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = by_owner_.find(owner);
  const size_t owned = (found != by_owner_.end() ? found->second : 0) + bytes;
  if (bytes_ + bytes > bytes_max_ || owned > bytes_max_ / 2) return false;
  by_owner_[owner] = owned;
  bytes_ += bytes;
  return true;
}

void BodyBudget::release(const std::string& owner, size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = by_owner_.find(owner);
  CHECK(found != by_owner_.end() && found->second >= bytes);
  found->second -= bytes;
  bytes_ -= bytes;
  if (found->second == 0) by_owner_.erase(found);
}

}  // namespace postrider::http
