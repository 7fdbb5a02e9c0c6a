#include "histogram.hpp"

#include <algorithm>
#include <cmath>

namespace bench {

std::uint64_t Histogram::slot_end(std::size_t slot) {
  if (slot < sub_slots) return slot;
  const std::size_t shift = slot / sub_slots - 1;
  const std::uint64_t start = (slot % sub_slots + sub_slots) << shift;
  return start + ((std::uint64_t{1} << shift) - 1);
}

std::uint64_t Histogram::percentile(double fraction) const {
  if (count_ == 0) return 0;
  const auto wanted = std::max<std::uint64_t>(1, std::ceil(fraction * static_cast<double>(count_)));
  std::uint64_t seen = 0;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    seen += slots_[slot];
    if (seen >= wanted) return std::min(slot_end(slot), max_ns_);
  }
  return max_ns_;
}

std::vector<Histogram::Point> Histogram::points() const {
  std::vector<Point> points;
  std::uint64_t seen = 0;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot] == 0) continue;
    seen += slots_[slot];
    points.push_back({.value_ns = std::min(slot_end(slot), max_ns_),
                      .fraction = static_cast<double>(seen) / static_cast<double>(count_)});
  }
  return points;
}

std::string Histogram::summary_json() const {
  const auto field = [](const char* name, std::uint64_t value) {
    return std::string{"\""} + name + "\":" + std::to_string(value);
  };
  return "{" + field("count", count_) + "," + field("mean_ns", mean_ns()) + "," +
         field("p50_ns", percentile(0.5)) + "," + field("p90_ns", percentile(0.9)) + "," +
         field("p99_ns", percentile(0.99)) + "," + field("p999_ns", percentile(0.999)) + "," +
         field("max_ns", max_ns_) + "}";
}

}  // namespace bench
