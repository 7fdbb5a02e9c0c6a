// How the rows of an outbox become events. The relay says which rows; a mover publishes them and sees to it
// that they are not published again. What cannot be published is recorded on its row and moved out of the
// way.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "postrider/outbox/window.hpp"
#include "postrider/pg/lease.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/task.hpp"
#include "postrider/telemetry/metrics.hpp"

namespace postrider::outbox {

class Judge;

struct MoveLimits {
  Judge* judge = nullptr;            // none: whatever is well formed is published
  const pg::Lease* lease = nullptr;  // that fences what is written; none: there is only one relay
  int rows_max = 500;
  int64_t bytes_max = 4 << 20;
  std::chrono::seconds retain{7 * 86'400};               // processed rows, in other databases
  std::string archive_dir = {};                          // where they go first; empty: nowhere
  int attempts_max = 5;                                  // then a row is set aside
  std::vector<int32_t> retry_seconds = {1, 5, 30, 120};  // after the first, second, … attempt
};

class Mover {
 public:
  virtual ~Mover() = default;

  // The next chunk of the window. True when there were rows. Throws pg::Error; then the window is unchanged.
  virtual runtime::Task<bool> move_fresh(Window& window) = 0;
  // Rows that were refused before and are due again.
  virtual runtime::Task<bool> move_failed() = 0;
  // About once a minute: rows that were processed long ago go.
  virtual runtime::Task<void> tidy() { co_return; }
};

// The statement of a row that was set aside.
struct SetAside {
  int64_t id = 0;
  std::string tenant_id, type, error;
};

// The two ends that all movers share.
pg::Batch fresh_batch(const Window& window, const MoveLimits& limits);
pg::Batch failed_batch(const MoveLimits& limits);
inline constexpr size_t kErrorBytesMax = 1'000;  // of what is kept about a row that was refused
pg::Batch fail_batch(const std::vector<Failure>& failures, const MoveLimits& limits);
// Last in a batch that writes.
void fence(pg::Batch& batch, const MoveLimits& limits);
std::vector<SetAside> read_set_aside(const pg::Rows& rows);
// The one place that words it.
void tell_set_aside(const std::string& outbox, const std::vector<SetAside>& rows);

}  // namespace postrider::outbox
