// An attempt as people see it.
#pragma once

#include "postrider/base/json_writer.hpp"
#include "postrider/pg/rows.hpp"
#include "postrider/registry/keys.hpp"

namespace postrider::history {

// From the first columns of attempts_of and attempts_of_keys. What an endpoint answered may repeat what it
// was sent: it is for those who may see payloads. Addresses and nodes are for operators.
base::JsonObject attempt_json(const pg::Rows& rows, size_t row, const registry::Principal& reader);

}  // namespace postrider::history
