// Formats and parses times, durations, sizes and IDs for people. Pure.
#pragma once

#include <boost/json/value.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "postrider/base/time.hpp"

namespace postrider::cli {

// "45s", "3m", "5h", "12d"; in the future "in 3m".
std::string age_text(base::Timestamp time, base::Timestamp now);
// "2026-04-08 10:15:30 UTC".
std::string time_text(base::Timestamp time);
// "450 µs", "12 ms", "10.0 s", "2m 30s", "3d".
std::string duration_text(std::chrono::microseconds duration);
std::string bytes_text(int64_t bytes);  // "256 KiB"
std::string share_text(double share);   // 0.44 → "44 %"

// The short form of a generated ID in tables on a terminal: enough to distinguish it, and accepted as
// an argument (see IdPattern). IDs chosen by callers stay as they are.
std::string short_id(const std::string& id);

// A short or cut ID, or a prefix of one.
struct IdPattern {
  std::string kind;            // "dlv_"
  std::string prefix, suffix;  // hex digits

  bool matches(std::string_view id) const;
  // The millisecond in which such an ID was made, if the prefix says.
  std::optional<base::Timestamp> made_at() const;
};
// None for a whole ID, and for anything that cannot be part of one.
std::optional<IdPattern> parse_id_pattern(std::string_view text);

// "1h", "2d", "90s", "1h30m" before `now`, a date, `now`, `today`, `yesterday` or RFC 3339.
std::optional<base::Timestamp> parse_time(std::string_view text, base::Timestamp now);
// "90", "90s", "5m", "1h30m", "7d", "2w", "250ms". A number alone is seconds.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

}  // namespace postrider::cli
