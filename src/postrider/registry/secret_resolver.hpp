// Looks up secret references for all threads of a node, on a separate thread, and caches the results for a
// while.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "postrider/base/time.hpp"
#include "postrider/registry/secret_reference.hpp"

namespace postrider::registry {

class SecretResolver {
 public:
  struct Options {
    ReferencePolicy policy;
    std::chrono::milliseconds kept{300'000};  // then it is looked up again; still used meanwhile, and once
                                              // as long when that fails
    std::chrono::milliseconds failure_kept{10'000};  // a failure is tried again after that
    size_t entries_max = 10'000;
  };
  explicit SecretResolver(Options options);
  ~SecretResolver();  // ends the thread; a program that runs is waited for, up to its timeout
  SecretResolver(const SecretResolver&) = delete;
  SecretResolver& operator=(const SecretResolver&) = delete;

  struct Found {
    std::optional<std::string> secret;
    std::string error;             // why there is none; empty while it is being looked up for the first time
    base::SteadyTime ask_again{};  // then there may be something else
  };
  // Never waits.
  Found find(std::string_view reference);

  const ReferencePolicy& policy() const { return options_.policy; }

 private:
  struct Entry {
    std::optional<std::string> secret;
    std::string error;
    base::SteadyTime found_at{};  // the secret
    base::SteadyTime tried_at{};
    base::SteadyTime asked_at{};
    bool is_waiting = false;
  };
  void run();
  bool is_due(const Entry& entry, base::SteadyTime now) const;
  Entry& entry_of(
      const std::string& reference);  // made if there is none; another one goes if there are too many

  const Options options_;
  std::mutex mutex_;
  std::condition_variable wakeup_;
  std::unordered_map<std::string, Entry> entries_;
  std::deque<std::string> waiting_;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace postrider::registry
