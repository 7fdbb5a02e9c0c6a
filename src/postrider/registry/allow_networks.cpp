#include "postrider/registry/allow_networks.hpp"

#include "postrider/registry/allow_networks.sql.hpp"

namespace postrider::registry {

std::vector<base::Network> AllowedNetworks::both() const {
  std::vector<base::Network> all = of_tenant;
  all.insert(all.end(), of_endpoint.begin(), of_endpoint.end());
  return all;
}

runtime::Task<AllowedNetworks> find_allowed_networks(pg::Link& link, model::TenantId tenant,
                                                     std::string endpoint) {
  const auto rows = co_await link.run(sql::find_allow_networks{.endpoint = endpoint, .tenant = tenant});
  AllowedNetworks found;
  if (rows.empty()) co_return found;
  found.of_tenant = networks_of(rows.front().of_tenant);
  found.of_endpoint = networks_of(rows.front().of_endpoint);
  co_return found;
}

std::shared_ptr<const http::DialProfile> profile_of_tenant(http::Client& client,
                                                           const model::TenantId& tenant,
                                                           std::span<const base::Network> networks) {
  return client.profile_of("tenant/" + tenant, networks);
}

std::vector<base::Network> networks_of(const std::vector<std::string_view>& texts) {
  std::vector<base::Network> networks;
  for (const std::string_view text : texts)
    if (const auto network = base::Network::parse(text)) networks.push_back(*network);
  return networks;
}

std::vector<std::string> texts_of(std::span<const base::Network> networks) {
  std::vector<std::string> texts;
  for (const base::Network& network : networks) texts.push_back(network.text());
  return texts;
}

}  // namespace postrider::registry
