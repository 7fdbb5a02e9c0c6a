#include "postrider/web/sign_in_guard.hpp"

#include <chrono>

namespace postrider::web {

namespace {

constexpr auto kWindow = std::chrono::minutes(1);

}  // namespace

bool SignInGuard::is_open(const std::string& address, base::SteadyTime now) {
  const std::lock_guard lock(mutex_);
  const auto found = failures_.find(address);
  return found == failures_.end() || now - found->second.since >= kWindow ||
         found->second.count < failures_max;
}

void SignInGuard::note_failure(const std::string& address, base::SteadyTime now) {
  const std::lock_guard lock(mutex_);
  // A full map starts afresh: entries live for a minute, so evicting single ones is not worth the
  // bookkeeping.
  if (failures_.size() >= addresses_max) failures_.clear();
  Failures& failures = failures_[address];
  if (failures.count == 0 || now - failures.since >= kWindow) failures = {0, now};
  ++failures.count;
}

}  // namespace postrider::web
