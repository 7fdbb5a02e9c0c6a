// An attempt as the API shows it.
#pragma once

#include "postrider/base/json_writer.hpp"
#include "postrider/history/delivery.sql.hpp"
#include "postrider/registry/keys.hpp"

namespace postrider::history {

// A preview of the response may repeat sent data, so only keys that may see payloads get it. Addresses
// and nodes are shown to operators only.
base::JsonObject attempt_json(const sql::attempts_of::Row& row, const registry::Principal& reader);
base::JsonObject attempt_json(const sql::attempts_of_keys::Row& row, const registry::Principal& reader);

}  // namespace postrider::history
