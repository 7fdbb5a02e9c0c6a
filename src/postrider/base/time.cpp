#include "postrider/base/time.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>

namespace postrider::base {

BootClock::time_point BootClock::now() noexcept {
  timespec ts{};
  clock_gettime(CLOCK_BOOTTIME, &ts);
  return time_point(std::chrono::seconds(ts.tv_sec) + std::chrono::nanoseconds(ts.tv_nsec));
}

Timestamp wall_now() {
  return std::chrono::time_point_cast<Microseconds>(std::chrono::system_clock::now());
}

std::string to_rfc3339(Timestamp t) {
  using namespace std::chrono;
  constexpr Timestamp kFirst = sys_days(year(1) / January / 1);
  constexpr Timestamp kLast = sys_days(year(10'000) / January / 1) - microseconds(1);
  t = std::clamp(t, kFirst, kLast);
  const auto days = std::chrono::floor<std::chrono::days>(t);
  const std::chrono::year_month_day date(days);
  const std::chrono::hh_mm_ss time(t - days);
  auto text = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                          static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                          time.hours().count(), time.minutes().count(), time.seconds().count());
  if (const auto micros = time.subseconds().count(); micros != 0) text += fmt::format(".{:06}", micros);
  return text + "Z";
}

namespace {

// Reads exactly `count` digits at `at`. No value if there are fewer.
std::optional<int> digits(std::string_view text, size_t at, size_t count) {
  if (at + count > text.size()) return std::nullopt;
  int value = 0;
  for (size_t i = at; i < at + count; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

// Reads ".123456789" at `at`, moving it past the fraction; cut to microseconds.
std::optional<Microseconds> fraction(std::string_view text, size_t& at) {
  if (at >= text.size() || text[at] != '.') return Microseconds(0);
  const size_t first = ++at;
  long micros = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
    if (at - first < 6) micros = micros * 10 + (text[at] - '0');
  if (at == first) return std::nullopt;
  for (size_t n = at - first; n < 6; ++n) micros *= 10;
  return Microseconds(micros);
}

std::optional<std::chrono::minutes> offset(std::string_view text, size_t at) {
  if (at >= text.size()) return std::nullopt;
  if ((text[at] == 'Z' || text[at] == 'z') && at + 1 == text.size()) return std::chrono::minutes(0);
  if (text[at] != '+' && text[at] != '-') return std::nullopt;
  const auto hours = digits(text, at + 1, 2);
  const auto minutes = digits(text, at + 4, 2);
  if (!hours || !minutes || text[at + 3] != ':' || at + 6 != text.size() || *hours > 23 || *minutes > 59)
    return std::nullopt;
  const auto total = std::chrono::hours(*hours) + std::chrono::minutes(*minutes);
  return text[at] == '-' ? -total : total;
}

}  // namespace

std::optional<Timestamp> parse_rfc3339(std::string_view text) {
  const auto year = digits(text, 0, 4), month = digits(text, 5, 2), day = digits(text, 8, 2);
  const auto hour = digits(text, 11, 2), minute = digits(text, 14, 2), second = digits(text, 17, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  if (text[4] != '-' || text[7] != '-' || (text[10] != 'T' && text[10] != 't' && text[10] != ' ') ||
      text[13] != ':' || text[16] != ':')
    return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  size_t at = 19;
  const auto micros = fraction(text, at);
  if (!micros) return std::nullopt;
  const auto zone = offset(text, at);
  if (!zone) return std::nullopt;
  return Timestamp(std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(*hour) +
                   std::chrono::minutes(*minute) + std::chrono::seconds(*second) + *micros - *zone);
}

}  // namespace postrider::base
