// A limited number of places (open streams, exports, test sends, calls that wait for a connection) and how
// many of them one holder may take, so that no tenant takes them all. One loop.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "postrider/http/server/problem.hpp"
#include "postrider/registry/keys.hpp"

namespace postrider::api {

class Shares {
 public:
  struct Limits {
    int total = std::numeric_limits<int>::max();
    int each = std::numeric_limits<int>::max();  // of one holder
  };
  explicit Shares(Limits limits) : limits_(limits) {}

  enum class Room { free, share_used_up, full };
  Room room_for(const std::string& holder) const;

  // Given back when it is destroyed. The Shares outlive it and are not moved while it lives.
  class Place {
   public:
    Place(Place&& other) noexcept
        : shares_(std::exchange(other.shares_, nullptr)), holder_(std::move(other.holder_)) {}
    Place& operator=(Place&&) = delete;
    ~Place();

   private:
    friend class Shares;
    Place(Shares& shares, std::string holder) : shares_(&shares), holder_(std::move(holder)) {}
    Shares* shares_;
    std::string holder_;
  };
  Place take(std::string holder);  // whether there is room or not

  const Limits& limits() const { return limits_; }
  int taken() const { return taken_; }

 private:
  void give_back(const std::string& holder);

  Limits limits_;
  int taken_ = 0;
  std::unordered_map<std::string, int> by_holder_;  // those with a place
};

// The share that a principal uses: that of its tenant if it is bound to one, otherwise its own.
std::string holder_of(const registry::Principal& principal);

// 429 if the caller's share is used up, 503 if the node has no room left. `what` is a plural: "streams".
http::Problem no_room(const Shares& shares, Shares::Room room, const registry::Principal& principal,
                      std::string_view what);

}  // namespace postrider::api
