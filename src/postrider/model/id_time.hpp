// When an id was made: ids are ordered by time (UUIDv7), and begin with milliseconds.
#pragma once

#include <chrono>

#include "postrider/base/time.hpp"
#include "postrider/base/uuid.hpp"

namespace postrider::model {

inline base::Timestamp time_of(const base::Uuid& id) {
  int64_t ms = 0;
  for (size_t i = 0; i < 6; ++i) ms = ms << 8 | id.bytes[i];
  return base::Timestamp(std::chrono::milliseconds(ms));
}

// In UTC.
inline std::chrono::sys_days day_of(const base::Uuid& id) {
  return std::chrono::floor<std::chrono::days>(time_of(id));
}

}  // namespace postrider::model
