#include "postrider/cli/human.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace postrider::cli {

namespace {

using namespace std::chrono_literals;
using std::chrono::days;

constexpr size_t kHexDigits = 32, kTimeDigits = 12;
constexpr std::string_view kKinds[] = {"evt_", "ep_", "dlv_", "key_", "sec_", "msg_", "rpl_", "node_"};

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string_view kind_of(std::string_view text) {
  for (const std::string_view kind : kKinds)
    if (text.starts_with(kind)) return kind;
  return "";
}

std::string count_text(int64_t seconds) {
  if (seconds < 90) return std::to_string(seconds) + "s";
  if (seconds < 90 * 60) return std::to_string(seconds / 60) + "m";
  if (seconds < 48 * 3600) return std::to_string(seconds / 3600) + "h";
  return std::to_string(seconds / 86400) + "d";
}

}  // namespace

std::string age_text(base::Timestamp time, base::Timestamp now) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - time).count();
  if (seconds < -1) return "in " + count_text(-seconds);
  return count_text(std::max<int64_t>(0, seconds));
}

std::string time_text(base::Timestamp time) {
  std::string text = base::to_rfc3339(std::chrono::floor<std::chrono::seconds>(time));
  text[10] = ' ';
  text.back() = ' ';
  return text + "UTC";
}

std::string duration_text(std::chrono::microseconds duration) {
  const auto us = duration.count();
  if (us < 1'000) return fmt::format("{} µs", us);
  if (us < 1'000'000) return fmt::format("{} ms", us / 1'000);
  if (us < 120'000'000) return fmt::format("{:.1f} s", static_cast<double>(us) / 1e6);
  const auto seconds = us / 1'000'000;
  std::string text;
  const std::pair<int64_t, const char*> units[] = {{86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}};
  int64_t left = seconds;
  int parts = 0;
  for (const auto& [size, name] : units) {
    if (left < size || parts == 2) continue;
    text += (text.empty() ? "" : " ") + std::to_string(left / size) + name;
    left %= size;
    ++parts;
  }
  return text;
}

std::string bytes_text(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double amount = static_cast<double>(bytes);
  size_t unit = 0;
  while (amount >= 1024 && unit + 1 < std::size(kUnits)) {
    amount /= 1024;
    ++unit;
  }
  const bool is_whole = amount == static_cast<double>(static_cast<int64_t>(amount));
  return is_whole ? fmt::format("{} {}", static_cast<int64_t>(amount), kUnits[unit])
                  : fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

std::string share_text(double share) {
  return fmt::format("{:.0f} %", share * 100);
}

std::string short_id(const std::string& id) {
  const std::string kind(kind_of(id));
  const std::string digits = id.substr(kind.size());
  if (kind.empty() || digits.size() != kHexDigits || !is_hex(digits)) return id;
  // Deliveries of one event differ in their last digits only, which name the endpoint.
  const bool is_first = digits.substr(kTimeDigits, 4) == "7000";  // of its millisecond
  const std::string head = kind + digits.substr(0, is_first ? kTimeDigits : kTimeDigits + 4);
  return kind == "dlv_" ? head + "-" + digits.substr(kHexDigits - 4) : head;
}

bool IdPattern::matches(std::string_view id) const {
  if (!id.starts_with(kind)) return false;
  id.remove_prefix(kind.size());
  return id.size() == kHexDigits && id.starts_with(prefix) && id.ends_with(suffix);
}

std::optional<base::Timestamp> IdPattern::made_at() const {
  if (prefix.size() < kTimeDigits) return std::nullopt;
  int64_t ms = 0;
  std::from_chars(prefix.data(), prefix.data() + kTimeDigits, ms, 16);
  return base::Timestamp(std::chrono::milliseconds(ms));
}

std::optional<IdPattern> parse_id_pattern(std::string_view text) {
  const std::string_view kind = kind_of(text);
  if (kind.empty()) return std::nullopt;
  text.remove_prefix(kind.size());
  while (text.ends_with("…")) text.remove_suffix(std::string_view("…").size());
  IdPattern pattern{std::string(kind), std::string(text), ""};
  if (const size_t dash = text.find('-'); dash != std::string_view::npos && kind == "dlv_") {
    pattern.prefix = text.substr(0, dash);
    pattern.suffix = text.substr(dash + 1);
  }
  const bool is_whole = pattern.prefix.size() >= kHexDigits;
  if (is_whole || pattern.prefix.size() < 4 || !is_hex(pattern.prefix) || !is_hex(pattern.suffix))
    return std::nullopt;
  return pattern;
}

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  std::chrono::milliseconds total{0};
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    int64_t count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc() || count < 0 || count > 1'000'000'000) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    const size_t length = std::min(text.find_first_of("0123456789"), text.size());
    const std::string_view unit = text.substr(0, length);
    text.remove_prefix(length);
    if (unit == "ms")
      total += std::chrono::milliseconds(count);
    else if (unit == "s" || (unit.empty() && total == 0ms && text.empty()))
      total += std::chrono::seconds(count);
    else if (unit == "m")
      total += std::chrono::minutes(count);
    else if (unit == "h")
      total += std::chrono::hours(count);
    else if (unit == "d")
      total += days(count);
    else if (unit == "w")
      total += days(7 * count);
    else
      return std::nullopt;
  }
  return total;
}

std::optional<base::Timestamp> parse_time(std::string_view text, base::Timestamp now) {
  if (text == "now") return now;
  const base::Timestamp today = std::chrono::floor<days>(now);
  if (text == "today") return today;
  if (text == "yesterday") return today - days(1);
  if (const auto whole = base::parse_rfc3339(text)) return whole;
  if (text.size() == 10 && text[4] == '-')
    if (const auto date = base::parse_rfc3339(std::string(text) + "T00:00:00Z")) return date;
  const bool has_unit = !text.empty() && text.find_first_not_of("0123456789") != std::string_view::npos;
  const auto ago = has_unit ? parse_duration(text) : std::nullopt;
  if (!ago) return std::nullopt;
  return now - *ago;
}

}  // namespace postrider::cli
