#include "postrider/http/retry_after.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace postrider::http {
namespace {

using std::chrono::seconds;

constexpr std::string_view kBlanks = " \t";
constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Cut at 9 digits: more than any limit, and never an overflow.
std::optional<int> number(std::string_view text) {
  if (!is_number(text)) return std::nullopt;
  if (text.size() > 9) return 999'999'999;
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string_view next_word(std::string_view& text, std::string_view separators) {
  text.remove_prefix(std::min(text.find_first_not_of(separators), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(separators));
  text.remove_prefix(word.size());
  return word;
}

std::optional<seconds> time_of_day(std::string_view text) {
  if (text.size() != 8 || text[2] != ':' || text[5] != ':') return std::nullopt;
  const auto hour = number(text.substr(0, 2)), minute = number(text.substr(3, 2)),
             second = number(text.substr(6, 2));
  if (!hour || !minute || !second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  return std::chrono::hours(*hour) + std::chrono::minutes(*minute) + seconds(*second);
}

// A two-digit year is the one nearest to now: RFC 9110 says not more than 50 years ahead.
int full_year(int year, std::string_view text, base::Timestamp now) {
  if (text.size() != 2) return year;
  const std::chrono::year_month_day today(std::chrono::floor<std::chrono::days>(now));
  const int this_year = static_cast<int>(today.year());
  const int guess = this_year - this_year % 100 + year;
  return guess > this_year + 50 ? guess - 100 : guess;
}

struct DateWords {
  std::string_view day, month, year, time;
};

std::optional<base::Timestamp> assemble(const DateWords& words, base::Timestamp now) {
  const auto day = number(words.day), year = number(words.year);
  const auto month = std::ranges::find(kMonths, words.month);
  const auto time = time_of_day(words.time);
  if (!day || !year || !time || month == kMonths.end() || words.year.size() > 4) return std::nullopt;
  const std::chrono::year_month_day date(
      std::chrono::year(full_year(*year, words.year, now)),
      std::chrono::month(static_cast<unsigned>(month - kMonths.begin()) + 1),
      std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok()) return std::nullopt;
  return base::Timestamp(std::chrono::sys_days(date) + *time);
}

// "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994".
std::optional<base::Timestamp> parse_http_date(std::string_view text, base::Timestamp now) {
  const size_t comma = text.find(',');
  DateWords words;
  if (comma == std::string_view::npos) {
    next_word(text, kBlanks);  // the day of the week is ignored
    words.month = next_word(text, kBlanks);
    words.day = next_word(text, kBlanks);
    words.time = next_word(text, kBlanks);
    words.year = next_word(text, kBlanks);
  } else {
    text.remove_prefix(comma + 1);
    words.day = next_word(text, " \t-");
    words.month = next_word(text, " \t-");
    words.year = next_word(text, " \t-");
    words.time = next_word(text, kBlanks);
    if (next_word(text, kBlanks) != "GMT") return std::nullopt;
  }
  if (!trimmed(text).empty()) return std::nullopt;
  return assemble(words, now);
}

}  // namespace

std::optional<seconds> parse_retry_after(std::string_view value, base::Timestamp now) {
  constexpr size_t value_bytes_max = 64;
  const std::string_view text = trimmed(value);
  if (text.size() > value_bytes_max) return std::nullopt;
  if (const auto delay = number(text)) return std::min(seconds(*delay), kRetryAfterMax);
  const auto date = parse_http_date(text, now);
  if (!date) return std::nullopt;
  return std::clamp(std::chrono::ceil<seconds>(*date - now), seconds(0), kRetryAfterMax);
}

}  // namespace postrider::http
