#include "postrider/registry/secret_resolver.hpp"

#include <algorithm>
#include <utility>

#include "postrider/telemetry/log.hpp"

namespace postrider::registry {

namespace {

constexpr std::chrono::milliseconds kLookup{100};  // ask again after that while one runs

}  // namespace

SecretResolver::SecretResolver(Options options) : options_(std::move(options)), thread_([this] { run(); }) {}

SecretResolver::~SecretResolver() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wakeup_.notify_all();
  thread_.join();
}

bool SecretResolver::is_due(const Entry& entry, base::SteadyTime now) const {
  if (entry.is_waiting) return false;
  if (entry.tried_at == base::SteadyTime{}) return true;
  return now - entry.tried_at >= (entry.error.empty() ? options_.kept : options_.failure_kept);
}

SecretResolver::Found SecretResolver::find(std::string_view reference) {
  const base::SteadyTime now = base::BootClock::now();
  const std::lock_guard lock(mutex_);
  Entry& entry = entry_of(std::string(reference));
  entry.asked_at = now;
  if (is_due(entry, now)) {
    entry.is_waiting = true;
    waiting_.emplace_back(reference);
    wakeup_.notify_one();
  }
  Found found;
  found.error = entry.error;
  found.ask_again = now + (entry.tried_at == base::SteadyTime{} ? kLookup : options_.failure_kept);
  if (entry.secret && now - entry.found_at < 2 * options_.kept) {
    found.secret = entry.secret;
    if (entry.error.empty()) found.ask_again = entry.tried_at + options_.kept;
  }
  // It has expired, but others come first: callers must not ask repeatedly until then.
  found.ask_again = std::max(found.ask_again, now + kLookup);
  return found;
}

// Removes the least recently used one, but not one that is being resolved, or it would be resolved twice.
SecretResolver::Entry& SecretResolver::entry_of(const std::string& reference) {
  const auto found = entries_.find(reference);
  if (found != entries_.end()) return found->second;
  if (entries_.size() >= options_.entries_max) {
    const auto longest = std::ranges::min_element(entries_, {}, [](const auto& item) {
      return std::pair(item.second.is_waiting, item.second.asked_at);
    });
    if (!longest->second.is_waiting) entries_.erase(longest);
  }
  return entries_[reference];
}

void SecretResolver::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wakeup_.wait(lock, [this] { return is_stopping_ || !waiting_.empty(); });
    if (is_stopping_) return;
    const std::string reference = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    auto resolved = resolve(options_.policy, reference);
    if (!resolved)
      telemetry::log_error("secret_unresolved")
          .field("reference", reference)
          .field("error", resolved.error());
    lock.lock();
    Entry& entry = entries_[reference];
    entry.is_waiting = false;
    entry.tried_at = base::BootClock::now();
    entry.error = resolved ? std::string() : resolved.error();
    if (!resolved) continue;
    entry.secret = std::move(*resolved);
    entry.found_at = entry.tried_at;
  }
}

}  // namespace postrider::registry
