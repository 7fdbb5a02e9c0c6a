#include "postrider/config/network.hpp"

#include <charconv>

namespace postrider::config {
namespace {

std::optional<int> number_up_to(std::string_view text, int max) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value < 0 || value > max) return std::nullopt;
  return value;
}

}  // namespace

std::string HostPort::text() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::optional<HostPort> HostPort::parse(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::optional<int> port = number_up_to(text.substr(colon + 1), 65'535);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    const auto address = IpAddress::parse(host);
    if (!address || !address->is_v6) return std::nullopt;
  } else if (host.find_first_of(":[] \t/") != std::string_view::npos) {
    return std::nullopt;
  }
  if (host.empty() || !port) return std::nullopt;
  return HostPort{.host = std::string(host), .port = *port};
}

}  // namespace postrider::config
