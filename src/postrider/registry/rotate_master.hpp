// Seals every secret with the current master key, while nodes keep running.
#pragma once

#include <cstdint>
#include <functional>

#include "postrider/crypto/master_keys.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/registry/caller.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::registry {

struct MasterRotation {
  int64_t resealed = 0;
  int64_t unreadable = 0;  // no configured key opens them; left as they are
};

// Works in small transactions, so that it can be stopped and started again. Values that are sealed with the
// current key are not touched; this includes values that change meanwhile. `progress` is called after each
// step. Throws pg::Error.
runtime::Task<MasterRotation> rotate_master_key(pg::Link& link, const crypto::MasterKeys& keys,
                                                const Caller& caller,
                                                std::function<void(const MasterRotation&)> progress);

}  // namespace postrider::registry
