// Tenants whose publish rate is exceeded. Their rows wait, in order, while the rows of others go on: what the
// relay reads leaves them out. After a pause some rows of such a tenant are read from the first that waits.
// Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "postrider/base/backoff.hpp"
#include "postrider/base/time.hpp"
#include "postrider/outbox/window.hpp"

namespace postrider::outbox {

class HeldTenants {
 public:
  static constexpr size_t kMax = 1'000;

  explicit HeldTenants(int rows_max) : rows_max_(rows_max) {}

  // Its rows from `first` on wait. False: too many tenants are held already.
  bool hold(const std::string& tenant, Position first, base::SteadyTime now);
  // A window is about to read from here, without the rows of these tenants.
  void skip_from(Position position);

  struct Turn {
    std::string tenant;
    Position from;
    int rows = 0;
  };
  // The tenant that has waited longest of those whose pause is over.
  std::optional<Turn> next(base::SteadyTime now) const;
  struct Moved {
    int published = 0;
    Position next;  // no row before it is left
    bool is_throttled = false;
  };
  void moved(const std::string& tenant, Moved moved, base::SteadyTime now);
  void release(const std::string& tenant) { held_.erase(tenant); }

  std::vector<std::string> names() const;
  std::optional<base::SteadyTime> due_at() const;

 private:
  struct Held {
    Position from;
    base::SteadyTime due_at{};
    base::Backoff pauses;
    int rows = 0;  // of its next turn: about what was taken in the last one
  };
  int rows_max_;
  std::map<std::string, Held> held_;
};

}  // namespace postrider::outbox
