// Publishes the rows of an outbox, each once. The relay decides which rows are next. A row that cannot be
// published gets its error recorded, and is set aside after several attempts.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "postrider/outbox/metrics.hpp"
#include "postrider/outbox/window.hpp"
#include "postrider/pg/batch_commit.hpp"
#include "postrider/pg/lease.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::outbox {

class Validator;

struct DrainLimits {
  Validator* validator = nullptr;           // none: every well-formed event is published
  const pg::SessionLease* lease = nullptr;  // fences all writes; none: there is only one relay
  int rows_max = 500;
  int64_t bytes_max = 4 << 20;
  std::chrono::seconds retain{7 * 86'400};               // processed rows, in other databases
  std::string archive_dir = {};                          // where they go first; empty: nowhere
  int attempts_max = 5;                                  // then a row is set aside
  std::vector<int32_t> retry_seconds = {1, 5, 30, 120};  // after the first, second, … attempt
};

// How a transaction that publishes rows or messages is repeated: at once after its partitions or tenants were
// created, otherwise by the next pass of the relay.
inline constexpr pg::CommitPolicy kOutboxCommits{
    .pauses = {.min = std::chrono::milliseconds(5), .max = std::chrono::milliseconds(250)},
    .retries_passing_errors = false,
    .repairs_max = 3};

class OutboxDrainer {
 public:
  virtual ~OutboxDrainer() = default;

  // The next chunk of the window. True if there were rows. Throws pg::Error; then the window is unchanged.
  virtual runtime::Task<bool> drain_fresh(Window& window) = 0;
  // Rows that were rejected before and are due again.
  virtual runtime::Task<bool> drain_failed() = 0;
  // When a tenant that is held off may have another turn.
  virtual std::optional<base::SteadyTime> due_at() const { return std::nullopt; }
  // About once a minute: removes rows that were processed long ago.
  virtual runtime::Task<void> tidy() { co_return; }
};

// A row that was set aside.
struct SetAside {
  int64_t id = 0;
  std::string tenant_id, type, error;
};

// What all drainers share.
using Tenants = std::vector<std::string>;
pg::Batch fresh_batch(const Window& window, const DrainLimits& limits, const Tenants& held = {});
std::string_view snapshot_of(const pg::Rows& first);  // of a fresh_batch()
pg::Batch failed_batch(const DrainLimits& limits, const Tenants& held = {});
inline constexpr size_t kErrorBytesMax = 1'000;  // of the error that is recorded on a row
pg::Batch fail_batch(const std::vector<Failure>& failures, const DrainLimits& limits);
// Fails the batch if the lease is lost. Add it last to a batch that writes.
void fence(pg::Batch& batch, const DrainLimits& limits);
std::vector<SetAside> read_set_aside(const pg::Rows& rows);
void log_set_aside(const std::string& outbox, const std::vector<SetAside>& rows);

}  // namespace postrider::outbox
