// The queries of a node before it serves.
#pragma once

#include "postrider/crypto/master_keys.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::registry {

// The number of buckets that the schema was made with; it never changes.
runtime::Task<int> read_buckets(pg::Link& link);

// The first node leaves a check value; later ones must be able to open it. Throws std::runtime_error with a
// sentence for the operator when the key is not the one that this database's secrets are sealed with.
runtime::Task<void> verify_master_key(pg::Link& link, const crypto::MasterKeys& keys);

}  // namespace postrider::registry
