#include "postrider/config/values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "postrider/base/text.hpp"

namespace postrider::config {
namespace {

base::Failure<std::string> must_be(std::string_view what) {
  return base::Failure{fmt::format("must be {}", what)};
}

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Unit {
  std::string_view name;
  int64_t factor;
};

// A whole number with a unit. No value for another unit, a negative number or an overflow.
template <size_t N>
std::optional<int64_t> quantity(std::string_view text, const Unit (&units)[N]) {
  text = trimmed(text);
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::optional<int64_t> number = whole_number(text.substr(0, digits));
  const std::string_view name = trimmed(text.substr(digits));
  const auto unit = std::ranges::find(units, name, &Unit::name);
  if (!number || unit == std::end(units)) return std::nullopt;
  if (*number > std::numeric_limits<int64_t>::max() / unit->factor) return std::nullopt;
  return *number * unit->factor;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> entries;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string_view entry = trimmed(text.substr(0, end));
    if (!entry.empty()) entries.push_back(entry);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return entries;
}

Parsed<int64_t> parse_integer(std::string_view text, Bounds bounds) {
  const std::optional<int64_t> value = whole_number(trimmed(text));
  if (!value || *value < bounds.min || *value > bounds.max)
    return must_be(fmt::format("a whole number from {} to {}", bounds.min, bounds.max));
  return *value;
}

Parsed<bool> parse_boolean(std::string_view text) {
  const std::string word = base::lowered(trimmed(text));
  if (word == "true" || word == "yes" || word == "on" || word == "1") return true;
  if (word == "false" || word == "no" || word == "off" || word == "0") return false;
  return must_be("true or false");
}

Parsed<std::chrono::milliseconds> parse_duration(std::string_view text) {
  static constexpr Unit kUnits[] = {
      {"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};
  constexpr int64_t ms_max = 100LL * 366 * 86'400'000;
  const std::optional<int64_t> value = quantity(text, kUnits);
  if (!value) return must_be("a duration with a unit, such as 500ms, 10s, 5m, 2h or 30d");
  if (*value > ms_max) return must_be("at most 100 years");
  return std::chrono::milliseconds(*value);
}

Parsed<int64_t> parse_size(std::string_view text) {
  static constexpr Unit kUnits[] = {
      {"", 1},       {"B", 1},          {"KiB", 1LL << 10},   {"MiB", 1LL << 20}, {"GiB", 1LL << 30},
      {"KB", 1'000}, {"MB", 1'000'000}, {"GB", 1'000'000'000}};
  const std::optional<int64_t> value = quantity(text, kUnits);
  if (!value) return must_be("a size, such as 65536, 256KiB or 16MiB");
  return *value;
}

Parsed<std::vector<Network>> parse_networks(std::string_view text) {
  std::vector<Network> networks;
  for (const std::string_view entry : split_list(text)) {
    const std::optional<Network> network = Network::parse(entry);
    if (!network)
      return base::Failure{
          fmt::format("must be a list of networks such as 10.0.0.0/8, ::1/128 (no bits set after the "
                      "prefix), and \"{}\" is none",
                      entry)};
    networks.push_back(*network);
  }
  return networks;
}

Parsed<std::vector<PortRange>> parse_ports(std::string_view text) {
  std::vector<PortRange> ranges;
  for (const std::string_view entry : split_list(text)) {
    const size_t dash = entry.find('-');
    const auto first = whole_number(trimmed(entry.substr(0, dash)));
    const auto last = dash == std::string_view::npos ? first : whole_number(trimmed(entry.substr(dash + 1)));
    if (!first || !last || *first < 1 || *last > 65'535 || *first > *last)
      return base::Failure{
          fmt::format("must be a list of ports such as 80, 443, 1024-65535, and \"{}\" is none", entry)};
    ranges.push_back({.first = static_cast<uint16_t>(*first), .last = static_cast<uint16_t>(*last)});
  }
  if (ranges.empty()) return must_be("a list of at least one port, such as 80, 443, 1024-65535");
  return ranges;
}

Parsed<Roles> parse_roles(std::string_view text) {
  Roles roles{.api = false, .relay = false, .delivery = false, .inbox = false, .upkeep = false};
  const std::pair<std::string_view, bool*> known[] = {{"api", &roles.api},
                                                      {"relay", &roles.relay},
                                                      {"delivery", &roles.delivery},
                                                      {"inbox", &roles.inbox},
                                                      {"upkeep", &roles.upkeep}};
  const std::vector<std::string_view> words = split_list(text);
  for (const std::string_view word : words) {
    if (word == "all") {
      roles = Roles{};
      continue;
    }
    const auto found = std::ranges::find_if(known, [&](const auto& entry) { return entry.first == word; });
    if (found == std::end(known))
      return base::Failure{fmt::format(
          "must be \"all\" or a list of api, relay, delivery, inbox, upkeep, and \"{}\" is none", word)};
    *found->second = true;
  }
  if (words.empty()) return must_be("\"all\" or a list of api, relay, delivery, inbox, upkeep");
  return roles;
}

Parsed<LogLevel> parse_log_level(std::string_view text) {
  const std::string word = base::lowered(trimmed(text));
  if (word == "debug") return LogLevel::debug;
  if (word == "info") return LogLevel::info;
  if (word == "warn" || word == "warning") return LogLevel::warn;
  if (word == "error") return LogLevel::error;
  return must_be("debug, info, warn or error");
}

Parsed<LogFormat> parse_log_format(std::string_view text) {
  const std::string word = base::lowered(trimmed(text));
  if (word == "auto") return LogFormat::automatic;
  if (word == "json") return LogFormat::json;
  if (word == "text") return LogFormat::text;
  return must_be("json, text or auto (text on a terminal, otherwise json)");
}

Parsed<std::string> parse_url(std::string_view text, std::vector<std::string_view> schemes) {
  const std::string_view url = trimmed(text);
  const size_t colon = url.find("://");
  const bool is_known =
      colon != std::string_view::npos && std::ranges::count(schemes, url.substr(0, colon)) > 0;
  const bool is_clean = std::ranges::none_of(url, [](unsigned char c) { return c <= ' ' || c == 0x7f; });
  if (!is_known || !is_clean || url.size() <= colon + 3)
    return must_be(fmt::format("a URL that begins with {}://", fmt::join(schemes, ":// or ")));
  return std::string(url);
}

std::string without_password(std::string_view url) {
  std::string out(url);
  const size_t start = out.find("://");
  if (start != std::string::npos) {
    const size_t authority_end = std::min(out.find_first_of("/?#", start + 3), out.size());
    const size_t at = out.rfind('@', authority_end);
    const size_t colon = out.find(':', start + 3);
    if (at != std::string::npos && at > start + 2 && colon < at)
      out.replace(colon + 1, at - colon - 1, "***");
  }
  // libpq also takes it as a parameter of the URL and in "key=value" form.
  for (size_t at = out.find("password="); at != std::string::npos; at = out.find("password=", at + 1)) {
    const size_t value = at + std::string_view("password=").size();
    const bool is_quoted = value < out.size() && out[value] == '\'';
    const size_t end = is_quoted ? std::min(out.find('\'', value + 1), out.size() - 1) + 1
                                 : std::min(out.find_first_of("& \t", value), out.size());
    out.replace(value, end - value, "***");
  }
  return out;
}

}  // namespace postrider::config
