// Retention: what is past its time goes, whole days at once and without anybody waiting for it.
//
// A day of events, attempts, dead letters or inbound messages is detached concurrently, written to the
// archive if there is one, and dropped. A day with something in it that is not over (a pending delivery, a
// message that nobody worked on, an unresolved dead letter) stays, and comes back if that was written while
// it was detached. Whatever is interrupted goes on at the next pass: a detach is finished, a detached day is
// archived and dropped. The audit log and rollups are deleted row by row.
#pragma once

#include <chrono>
#include <string>

#include "postrider/config/config.hpp"
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

// How many days back partitions are kept ready: no further than they are kept.
int days_back(const RetentionOptions& options);

struct Retired {
  int dropped = 0, held = 0;
  int64_t rows_deleted = 0;
};
// One pass over everything. Nothing happens while another node is at it. The link is a session of its own
// with a lock_timeout. Throws pg::Error, and std::runtime_error when the archive cannot be written.
runtime::Task<Retired> retire(pg::Link& link, RetentionOptions options);

}  // namespace postrider::upkeep
