// Private networks that operators opened for a tenant or one of its endpoints, besides those of the node.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/base/ip_address.hpp"
#include "postrider/http/client/client.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::registry {

inline constexpr size_t allow_networks_max = 32;  // of a tenant, and of an endpoint

struct AllowedNetworks {
  std::vector<base::Network> of_tenant, of_endpoint;

  std::vector<base::Network> both() const;
};

// Both empty if there is no such tenant; `endpoint` may be one that does not exist. One round trip.
runtime::Task<AllowedNetworks> find_allowed_networks(pg::Link& link, model::TenantId tenant,
                                                     std::string endpoint);

// The profile of requests to URLs that belong to the tenant and to no endpoint with a list; null: the
// client's own. To be called on the client's thread.
std::shared_ptr<const http::DialProfile> profile_of_tenant(http::Client& client,
                                                           const model::TenantId& tenant,
                                                           std::span<const base::Network> networks);

// Between the column and the networks. A text that is no network opens nothing.
std::vector<base::Network> networks_of(const std::vector<std::string_view>& texts);
std::vector<std::string> texts_of(std::span<const base::Network> networks);

}  // namespace postrider::registry
