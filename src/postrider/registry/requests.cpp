#include "postrider/registry/requests.hpp"

#include <utility>

#include "postrider/registry/requests.sql.hpp"

namespace postrider::registry {

runtime::Task<void> serve_requests(pg::Link& link) {
  co_await link.run(sql::limit_lock_wait{}, sql::record_requested_changes{});
  bool is_more = true;
  for (int i = 0; is_more && i < requested_replays_max; ++i) {
    const auto [limited, replay_rows] =
        co_await link.run(sql::limit_lock_wait{}, sql::create_requested_replay{});
    is_more = replay_rows.front().was_made;
  }
}

}  // namespace postrider::registry
