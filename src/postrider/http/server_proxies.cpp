#include "postrider/http/server_proxies.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>
#include <optional>
#include <stdexcept>

#include "postrider/http/request_grammar.hpp"

namespace postrider::http {

namespace ip = boost::asio::ip;

struct TrustedProxies::Networks {
  std::vector<ip::network_v4> v4;
  std::vector<ip::network_v6> v6;

  bool contain(const ip::address& address) const {
    if (address.is_v4()) {
      for (const auto& network : v4)
        if (ip::network_v4(address.to_v4(), network.prefix_length()).network() == network.network())
          return true;
      return false;
    }
    for (const auto& network : v6)
      if (ip::network_v6(address.to_v6(), network.prefix_length()).network() == network.network())
        return true;
    return false;
  }
};

namespace {

std::optional<ip::address> parse_address(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  boost::system::error_code error;
  const ip::address address = ip::make_address(std::string(text), error);
  if (error) return std::nullopt;
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return ip::address(ip::make_address_v4(ip::v4_mapped, address.to_v6()));
  return address;
}

}  // namespace

TrustedProxies::TrustedProxies(const std::vector<std::string>& networks)
    : networks_(std::make_unique<Networks>()) {
  for (const std::string& text : networks) {
    const bool is_v6 = text.find(':') != std::string::npos;
    const std::string network = text.find('/') != std::string::npos ? text : text + (is_v6 ? "/128" : "/32");
    boost::system::error_code error;
    if (is_v6)
      networks_->v6.push_back(ip::make_network_v6(network, error));
    else
      networks_->v4.push_back(ip::make_network_v4(network, error));
    if (error) throw std::invalid_argument("not an address or a CIDR: \"" + text + "\"");
  }
}

TrustedProxies::~TrustedProxies() = default;

bool TrustedProxies::trusts(const std::string& address) const {
  const auto parsed = parse_address(address);
  return parsed && networks_->contain(*parsed);
}

std::string TrustedProxies::client_address(const std::string& peer, const std::vector<Field>& fields) const {
  std::string client = peer;
  for (auto field = fields.rbegin(); field != fields.rend(); ++field) {
    if (!equals_ignoring_case(field->name, "x-forwarded-for")) continue;
    std::string_view list = field->value;
    while (trusts(client)) {
      const size_t comma = list.rfind(',');
      const auto hop = parse_address(comma == std::string_view::npos ? list : list.substr(comma + 1));
      if (!hop) return client;
      client = hop->to_string();
      if (comma == std::string_view::npos) break;
      list = list.substr(0, comma);
    }
  }
  return client;
}

}  // namespace postrider::http
