// Creates deliveries again from event rows, after the queue, or the queue and the history, was lost.
//
// A delivery that is pending, or has ended according to the history, is not created again. Where the history
// is lost as well, the event is sent again: at least once, under the same event ID. Each step handles a few
// events in one transaction that also moves the cursor, at a limited rate: no snapshot is held for long, and
// a run that was killed resumes where it was. Nodes find the new rows through the publish log. Used on one
// loop.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "postrider/base/time.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/pg/lease.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/loop.hpp"

namespace postrider::replay {

struct RefanoutRange {
  std::optional<model::TenantId> tenant{};  // none: all
  base::Timestamp since{};                  // when the event was published: inclusive
  base::Timestamp until{};                  // exclusive
};

struct RefanoutOptions {
  bool is_dry = false;  // writes nothing; counts and lists the first missing deliveries
  double rate_per_second = 1'000;
  int step_events_max = 500;  // that one step reads
  int step_deliveries_max = 500;
  size_t step_bytes_max = 4 << 20;  // of an archive
  // Also events whose attempts retention has removed: all of them are sent again.
  bool is_without_history = false;
};

// The progress of reading one origin.
struct Standing {
  std::string origin;  // "events", "outbox:billing", "archive:/var/…"
  std::optional<base::Uuid> after_id{}, after_endpoint{};
  std::optional<base::Timestamp> after_time{};
  int64_t after_row = 0;
  int64_t scanned = 0, queued = 0;
  bool is_resumed = false;
  bool is_of_rows = false;  // of an outbox: `queued` counts rows that are given to the relay again
  std::optional<base::Timestamp> unknown_before{};  // earlier events of the range were left out
  // Lines of an archive that were left out.
  int64_t rejected = 0;
  std::vector<std::string> first_rejected{};  // at most kShownMax, each with its reason
  std::vector<std::string> first_missing{};   // of a dry run, at most kShownMax: "acme evt_… -> hooks"

  static constexpr int kShownMax = 20;
  void add_rejected(int64_t line, const std::string& why);
};

// The next line of an archive; false at its end.
using NextLine = std::function<bool(std::string&)>;

class Refanout {
 public:
  // The link has custom plans and is a session of its own.
  Refanout(runtime::Loop& loop, pg::Link& link, RefanoutRange range, RefanoutOptions options);
  // Called at the beginning of an origin and after each step.
  void on_progress(std::function<void(const Standing&)> callback) { progress_ = std::move(callback); }

  // Before anything else. False: another one is at work. Puts what a truncated queue lacks back.
  runtime::Task<bool> begin();
  // All throw pg::Error. Committed steps are kept and not repeated.
  runtime::Task<Standing> from_events();
  // Rows as retention archives them. Events that are gone are brought back first. Rows of an outbox whose
  // event is gone are written to postrider's own outbox, under the same ids.
  runtime::Task<Standing> from_archive(std::string file, NextLine next_line);

  // For other places: where the last run stood, and that a step is done.
  runtime::Task<Standing> stand(std::string origin);
  struct Step {
    int64_t scanned = 0, queued = 0;
    bool is_last = false;
  };
  runtime::Task<void> move(Standing& standing, Step step);
  // From when on retention keeps events and attempts. Older events are not sent again, unless they come from
  // an archive.
  struct KeptSince {
    base::Timestamp events, attempts;
  };
  runtime::Task<KeptSince> kept_since();
  // Finds the events that have no row. Their keys are deleted, so that they can be published again.
  struct Named {
    std::vector<std::string> tenants, events;
  };
  runtime::Task<std::vector<size_t>> lost(Named named);

  const RefanoutRange& range() const { return range_; }
  const RefanoutOptions& options() const { return options_; }

 private:
  struct Ids {
    base::Uuid from, below;
  };
  runtime::Task<Step> fan_out(pg::Transaction& transaction, Ids ids, Standing& standing);
  runtime::Task<Ids> restore(pg::Transaction& transaction, const std::string& rows);
  runtime::Task<void> publish_rows(const std::string& rows, Standing& standing, int64_t lines);
  runtime::Task<void> fan_out_rows(const std::string& rows, Standing& standing, int64_t lines);
  pg::Batch move_batch(const Standing& standing, const Step& step) const;
  runtime::Task<void> rest(int64_t queued);
  void report(const Standing& standing) const;

  runtime::Task<void> hold_retention();
  runtime::Task<void> keep_leases();

  runtime::Loop& loop_;
  pg::Link& link_;
  // Retention is stopped while an archive is read: a day that was restored must not be dropped before its
  // deliveries exist.
  pg::SessionLease lease_, retention_lease_;
  bool holds_retention_ = false;
  RefanoutRange range_;
  RefanoutOptions options_;
  std::function<void(const Standing&)> progress_;
};

// The end of an earlier run over the same range that was not finished, for one that names no end. Throws
// pg::Error.
runtime::Task<std::optional<base::Timestamp>> unfinished_until(pg::Link& link, RefanoutRange range);

}  // namespace postrider::replay
