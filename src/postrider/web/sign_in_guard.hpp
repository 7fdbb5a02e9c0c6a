// Limits how often one address may present wrong keys and links to the sign-in pages. Shared by the loops of
// a node; any thread.
#pragma once

#include <mutex>
#include <string>
#include <unordered_map>

#include "postrider/base/time.hpp"

namespace postrider::web {

class SignInGuard {
 public:
  static constexpr int failures_max = 5;  // within a minute
  static constexpr size_t addresses_max = 10'000;

  bool is_open(const std::string& address, base::SteadyTime now);
  void note_failure(const std::string& address, base::SteadyTime now);

 private:
  struct Failures {
    int count = 0;
    base::SteadyTime since;
  };
  std::mutex mutex_;
  std::unordered_map<std::string, Failures> failures_;
};

}  // namespace postrider::web
