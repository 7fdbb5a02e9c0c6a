// The memory that request bodies of one kind may take, over all connections of a process. Any thread.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <unordered_map>

namespace postrider::http {

class BodyBudget {
 public:
  explicit BodyBudget(size_t bytes_max) : bytes_max_(bytes_max) {}

  // False, with nothing taken, if the budget is used up or this owner already has half of it.
  bool take(const std::string& owner, size_t bytes);
  void release(const std::string& owner, size_t bytes);

 private:
  const size_t bytes_max_;
  std::mutex mutex_;
  size_t bytes_ = 0;
  std::unordered_map<std::string, size_t> by_owner_;  // those that hold any
};

}  // namespace postrider::http
