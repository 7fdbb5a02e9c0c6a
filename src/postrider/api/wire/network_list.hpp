// `allow_networks` of tenants and endpoints.
#pragma once

#include <vector>

#include "postrider/api/wire/document.hpp"
#include "postrider/base/ip_address.hpp"

namespace postrider::api {

// null is the empty list. As in the setting of that name, no network may be every address.
void read_networks(Fields& fields, std::vector<base::Network>& networks);

}  // namespace postrider::api
