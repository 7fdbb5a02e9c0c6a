// Retention: whole days are dropped when their time is over.
//
// A day of events, attempts or dead letters goes for every tenant at once. Rows that something still needs
// are moved to the kept tables first (keep.hpp); then the day is detached concurrently, written to the
// archive if there is one, and dropped. A day of the inbox stays while a message in it is not done. An
// interrupted pass continues with the next one: a detach is finished, a detached day is archived and dropped.
// The audit log and rollups are deleted row by row.
#pragma once

#include <chrono>
#include <string>

#include "postrider/config/config.hpp"
#include "postrider/pg/lease.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::upkeep {

struct RetentionOptions {
  std::chrono::seconds events{0};    // also dead letters, keys and what replays made of them
  std::chrono::seconds attempts{0};  // also finished replays
  std::chrono::seconds inbox{0};     // also the messages' idempotency keys
  std::chrono::seconds audit{0};
  std::chrono::seconds rollups{0};
  std::string archive_dir;  // empty: none

  static RetentionOptions from(const config::Config& config);
};

// The number of past days for which partitions exist in advance: at most as many as are retained.
int days_back(const RetentionOptions& options);

struct Retired {
  int dropped = 0, held = 0;
  int64_t kept = 0;  // rows that outlive the days that were dropped
  int64_t rows_deleted = 0;
  int64_t expiring = 0;  // deliveries that have waited for 1.5 x the time of events or longer
  bool is_pass = false;  // false: another node is at it
};
// One pass over everything, under the lease: nothing happens while another session has it. The link is the
// lease's, a session of its own with a lock_timeout. Throws pg::Error, and std::runtime_error when the
// archive cannot be written.
runtime::Task<Retired> retire(pg::Link& link, pg::LeaseRenewer& lease, RetentionOptions options);
inline const std::string kRetentionLease = "retention";

}  // namespace postrider::upkeep
