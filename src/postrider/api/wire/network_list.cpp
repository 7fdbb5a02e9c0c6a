#include "postrider/api/wire/network_list.hpp"

#include <algorithm>
#include <string>

#include "postrider/registry/allow_networks.hpp"

namespace postrider::api {

namespace {

constexpr std::string_view kField = "allow_networks";

base::Result<base::Network, std::string> read_network(const boost::json::value& value) {
  const auto* text = value.if_string();
  const auto network = text ? base::Network::parse(*text) : std::nullopt;
  if (!network)
    return base::Failure{std::string(
        "must be a network such as 10.1.2.0/24 or fd00:1::/64, with no bits set after the prefix")};
  if (network->prefix_bits == 0)
    return base::Failure{std::string("must not be every address; list the private networks to reach")};
  if (network->address.unmapped() != network->address)
    return base::Failure{std::string("must be written as an IPv4 network such as 10.1.2.0/24")};
  return *network;
}

}  // namespace

void read_networks(Fields& fields, std::vector<base::Network>& networks) {
  const auto* value = fields.take(kField);
  if (!value) return;
  networks.clear();
  if (value->is_null()) return;
  const auto* array = value->if_array();
  if (!array || array->size() > registry::allow_networks_max)
    return fields.reject(
        kField, "must be an array of at most " + std::to_string(registry::allow_networks_max) + " networks");
  for (size_t i = 0; i < array->size(); ++i) {
    const auto network = read_network((*array)[i]);
    if (!network)
      fields.reject(kField, i, network.error());
    else if (std::find(networks.begin(), networks.end(), *network) == networks.end())
      networks.push_back(*network);
  }
}

}  // namespace postrider::api
