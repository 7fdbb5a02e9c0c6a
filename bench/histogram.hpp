// A log-linear histogram of durations in nanoseconds.
//
// Every power of two is cut into 64 equal slots, so a value is known to within 1.6 %. Recording is a few
// instructions and never allocates. One thread only.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

class Histogram {
 public:
  struct Point {
    std::uint64_t value_ns;
    double fraction;  // of all values that are at most value_ns
  };

  void record(std::uint64_t value_ns) {
    ++slots_[slot_of(value_ns)];
    ++count_;
    sum_ns_ += value_ns;
    if (value_ns > max_ns_) max_ns_ = value_ns;
  }

  // The smallest recorded value (rounded up to its slot's end, never over the maximum) such that at least
  // `fraction` of all values are at most that. 0 when nothing was recorded.
  std::uint64_t percentile(double fraction) const;

  // The distribution as one point per slot in use, in rising order.
  std::vector<Point> points() const;

  std::uint64_t count() const { return count_; }
  std::uint64_t max_ns() const { return max_ns_; }
  std::uint64_t mean_ns() const { return count_ == 0 ? 0 : sum_ns_ / count_; }
  void clear() { *this = Histogram{}; }

  // {"count":…,"mean_ns":…,"p50_ns":…,"p90_ns":…,"p99_ns":…,"p999_ns":…,"max_ns":…}
  std::string summary_json() const;

 private:
  static constexpr int sub_bits = 6;
  static constexpr std::size_t sub_slots = std::size_t{1} << sub_bits;

  static std::size_t slot_of(std::uint64_t value) {
    if (value < sub_slots) return value;
    const int shift = std::bit_width(value) - 1 - sub_bits;
    return (static_cast<std::size_t>(shift) + 1) * sub_slots + ((value >> shift) - sub_slots);
  }
  static std::uint64_t slot_end(std::size_t slot);

  std::array<std::uint32_t, (64 - sub_bits + 1) * sub_slots> slots_{};
  std::uint64_t count_ = 0;
  std::uint64_t sum_ns_ = 0;
  std::uint64_t max_ns_ = 0;
};

}  // namespace bench
