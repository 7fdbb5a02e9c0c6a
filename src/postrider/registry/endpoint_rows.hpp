// Private to registry/: endpoints between rows and structs.
#pragma once

#include <vector>

#include "postrider/registry/audit.hpp"
#include "postrider/registry/endpoints.hpp"
#include "postrider/registry/endpoints.sql.hpp"

namespace postrider::registry {

// The limits for counting pending deliveries: of a single endpoint, and of each endpoint in a list.
inline constexpr int32_t pending_counted_max = 10'000;
inline constexpr int32_t pending_counted_in_list_max = 500;

// The rows of load_endpoints, asked to count up to `pending_max`.
std::vector<Endpoint> read_endpoints(const pg::RowsOf<sql::load_endpoints>& rows, int32_t pending_max);

// As the audit log shows it. Without keys the names of custom headers are masked, too.
Snapshot snapshot(const Endpoint& endpoint, const crypto::MasterKeys* keys);

}  // namespace postrider::registry
