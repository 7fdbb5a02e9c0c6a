#include "postrider/config/network.hpp"

#include <arpa/inet.h>

#include <algorithm>
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

bool bit_of(const std::array<uint8_t, 16>& address, int index) {
  return (address[static_cast<size_t>(index) / 8] >> (7 - index % 8) & 1) != 0;
}

}  // namespace

bool Network::contains(const Network& other) const {
  if (is_v6 != other.is_v6 || prefix_bits > other.prefix_bits) return false;
  for (int i = 0; i < prefix_bits; ++i)
    if (bit_of(address, i) != bit_of(other.address, i)) return false;
  return true;
}

std::string Network::text() const {
  char out[INET6_ADDRSTRLEN] = "";
  inet_ntop(is_v6 ? AF_INET6 : AF_INET, address.data(), out, sizeof out);
  return std::string(out) + "/" + std::to_string(prefix_bits);
}

std::optional<Network> Network::parse(std::string_view text) {
  const size_t slash = text.find('/');
  const std::string address_text(text.substr(0, slash));
  Network network;
  network.is_v6 = address_text.find(':') != std::string::npos;
  const int family = network.is_v6 ? AF_INET6 : AF_INET;
  const int bits_max = network.is_v6 ? 128 : 32;
  if (inet_pton(family, address_text.c_str(), network.address.data()) != 1) return std::nullopt;
  const std::optional<int> prefix =
      slash == std::string_view::npos ? bits_max : number_up_to(text.substr(slash + 1), bits_max);
  if (!prefix) return std::nullopt;
  network.prefix_bits = *prefix;
  for (int i = network.prefix_bits; i < bits_max; ++i)
    if (bit_of(network.address, i)) return std::nullopt;
  return network;
}

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
    in6_addr address;
    if (inet_pton(AF_INET6, std::string(host).c_str(), &address) != 1) return std::nullopt;
  } else if (host.find_first_of(":[] \t/") != std::string_view::npos) {
    return std::nullopt;
  }
  if (host.empty() || !port) return std::nullopt;
  return HostPort{.host = std::string(host), .port = *port};
}

}  // namespace postrider::config
