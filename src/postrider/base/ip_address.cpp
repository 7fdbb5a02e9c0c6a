#include "postrider/base/ip_address.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "postrider/base/check.hpp"

namespace postrider::base {

namespace {

std::optional<uint32_t> parse_dotted_quad(std::string_view text) {
  uint32_t number = 0;
  for (int part = 0; part < 4; ++part) {
    if (part > 0) {
      if (text.empty() || text.front() != '.') return std::nullopt;
      text.remove_prefix(1);
    }
    size_t digits = 0;
    uint32_t value = 0;
    while (digits < text.size() && digits < 3 && text[digits] >= '0' && text[digits] <= '9')
      value = value * 10 + static_cast<uint32_t>(text[digits++] - '0');
    if (digits == 0 || value > 255 || (digits > 1 && text.front() == '0')) return std::nullopt;
    text.remove_prefix(digits);
    number = number << 8 | value;
  }
  if (!text.empty()) return std::nullopt;
  return number;
}

constexpr std::array<uint8_t, 12> kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

}  // namespace

IpAddress IpAddress::v4(uint32_t host_order) {
  IpAddress address;
  for (int i = 0; i < 4; ++i)
    address.bytes[static_cast<size_t>(i)] = static_cast<uint8_t>(host_order >> (24 - 8 * i));
  return address;
}

IpAddress IpAddress::v6(const std::array<uint8_t, 16>& network_order) {
  return IpAddress{.bytes = network_order, .is_v6 = true};
}

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  if (text.find(':') == std::string_view::npos) {
    const auto number = parse_dotted_quad(text);
    if (!number) return std::nullopt;
    return v4(*number);
  }
  char terminated[INET6_ADDRSTRLEN] = {};
  if (text.size() >= sizeof terminated || text.find('\0') != std::string_view::npos) return std::nullopt;
  std::memcpy(terminated, text.data(), text.size());
  std::array<uint8_t, 16> bytes{};
  if (inet_pton(AF_INET6, terminated, bytes.data()) != 1) return std::nullopt;
  return v6(bytes);
}

uint32_t IpAddress::v4_number() const {
  CHECK(!is_v6);
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

IpAddress IpAddress::unmapped() const {
  if (!is_v6 || !std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), bytes.begin())) return *this;
  IpAddress address;
  std::copy(bytes.begin() + 12, bytes.end(), address.bytes.begin());
  return address;
}

std::string IpAddress::to_string() const {
  char text[INET6_ADDRSTRLEN];
  CHECK(inet_ntop(is_v6 ? AF_INET6 : AF_INET, bytes.data(), text, sizeof text) != nullptr);
  return text;
}

std::optional<Network> Network::parse(std::string_view text) {
  const size_t slash = text.find('/');
  const auto address = IpAddress::parse(text.substr(0, slash));
  if (!address) return std::nullopt;
  Network network{.address = *address, .prefix_bits = address->is_v6 ? 128 : 32};
  if (slash == std::string_view::npos) return network;

  const std::string_view bits = text.substr(slash + 1);
  int prefix_bits = 0;
  const auto [end, error] = std::from_chars(bits.data(), bits.data() + bits.size(), prefix_bits);
  if (error != std::errc() || end != bits.data() + bits.size() || bits.front() == '-') return std::nullopt;
  if (prefix_bits > network.prefix_bits) return std::nullopt;
  for (int bit = prefix_bits; bit < network.prefix_bits; ++bit)
    if (address->bytes[static_cast<size_t>(bit / 8)] >> (7 - bit % 8) & 1) return std::nullopt;
  network.prefix_bits = prefix_bits;
  return network;
}

std::string Network::text() const {
  return address.to_string() + "/" + std::to_string(prefix_bits);
}

bool Network::contains(const IpAddress& candidate) const {
  if (candidate.is_v6 != address.is_v6) return false;
  const size_t whole = static_cast<size_t>(prefix_bits / 8);
  if (!std::equal(address.bytes.begin(), address.bytes.begin() + static_cast<std::ptrdiff_t>(whole),
                  candidate.bytes.begin()))
    return false;
  const int rest = prefix_bits % 8;
  if (rest == 0) return true;
  const auto mask = static_cast<uint8_t>(0xff << (8 - rest));
  return (address.bytes[whole] & mask) == (candidate.bytes[whole] & mask);
}

}  // namespace postrider::base
