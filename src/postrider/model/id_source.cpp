#include "postrider/model/id_source.hpp"

#include <random>

#include "postrider/base/check.hpp"

namespace postrider::model {

namespace {

constexpr int kSequences = 1 << 12;  // ids per millisecond; beyond that the ids run ahead of the clock

uint64_t random_bits() {
  static thread_local std::mt19937_64 generator{std::random_device{}()};
  return generator();
}

}  // namespace

void IdSource::synchronise(int slot, base::Timestamp database_now, base::SteadyTime read_at) {
  CHECK(slot >= 0 && slot < kSlots);
  const std::lock_guard lock(mutex_);
  slot_ = slot;
  database_now_ = database_now;
  read_at_ = read_at;
}

void IdSource::correct(base::Timestamp database_now, base::SteadyTime read_at,
                       base::Microseconds uncertainty) {
  const std::lock_guard lock(mutex_);
  const auto passed = std::chrono::duration_cast<base::Microseconds>(read_at - read_at_);
  const base::Microseconds off = database_now - (database_now_ + passed);
  if (std::chrono::abs(off) <= uncertainty) return;
  database_now_ = database_now;
  read_at_ = read_at;
}

bool IdSource::is_ready() const {
  const std::lock_guard lock(mutex_);
  return slot_ >= 0;
}

base::Timestamp IdSource::now_locked() const {
  CHECK(slot_ >= 0);
  return database_now_ + std::chrono::duration_cast<base::Microseconds>(base::BootClock::now() - read_at_);
}

base::Timestamp IdSource::now() const {
  const std::lock_guard lock(mutex_);
  return now_locked();
}

base::Uuid IdSource::next() {
  const std::lock_guard lock(mutex_);
  const int64_t now_ms =
      std::chrono::floor<std::chrono::milliseconds>(now_locked()).time_since_epoch().count();
  if (now_ms > last_ms_) {
    last_ms_ = now_ms;
    sequence_ = 0;
  } else if (++sequence_ == kSequences) {
    ++last_ms_;
    sequence_ = 0;
  }
  base::Uuid id;
  for (size_t i = 0; i < 6; ++i) id.bytes[i] = static_cast<uint8_t>(last_ms_ >> (40 - 8 * i));
  id.bytes[6] = static_cast<uint8_t>(0x70 | (sequence_ >> 8));
  id.bytes[7] = static_cast<uint8_t>(sequence_);
  id.bytes[8] = static_cast<uint8_t>(0x80 | (slot_ >> 8));
  id.bytes[9] = static_cast<uint8_t>(slot_);
  const uint64_t random = random_bits();
  for (size_t i = 0; i < 6; ++i) id.bytes[10 + i] = static_cast<uint8_t>(random >> (8 * i));
  return id;
}

}  // namespace postrider::model
