// How values are spelled in settings. Each parser gives a value or says what would have been right ("must be
// …").
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/base/result.hpp"
#include "postrider/config/config.hpp"

namespace postrider::config {

template <class T>
using Parsed = base::Result<T, std::string>;

std::string_view trimmed(std::string_view text);
std::vector<std::string_view> split_list(
    std::string_view text);  // at commas, trimmed, empty entries left out

struct Bounds {
  int64_t min;
  int64_t max;
};
Parsed<int64_t> parse_integer(std::string_view text, Bounds bounds);
Parsed<bool> parse_boolean(std::string_view text);  // true, false, yes, no, on, off, 1, 0

// "500ms", "10 s", "5m", "2h", "30d". A unit is required, so that it is never guessed.
Parsed<std::chrono::milliseconds> parse_duration(std::string_view text);
// "65536", "256KiB", "1 MiB", "2GB"; KB, MB and GB are powers of ten.
Parsed<int64_t> parse_size(std::string_view text);

Parsed<std::vector<Network>> parse_networks(std::string_view text);
Parsed<std::vector<PortRange>> parse_ports(std::string_view text);  // "80, 443, 1024-65535"
Parsed<Roles> parse_roles(std::string_view text);
Parsed<LogLevel> parse_log_level(std::string_view text);
Parsed<LogFormat> parse_log_format(std::string_view text);

// An absolute URL with one of the schemes ("https", "smtp+starttls"), without white space.
Parsed<std::string> parse_url(std::string_view text, std::vector<std::string_view> schemes);

// "postgres://user:***@host/db": what is between the first ':' of the userinfo and the '@', and password
// parameters.
std::string without_password(std::string_view url);

}  // namespace postrider::config
