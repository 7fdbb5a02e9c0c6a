#include "postrider/publish/unknown_commits.hpp"

#include <algorithm>
#include <vector>

#include "postrider/publish/recover.sql.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::publish {

namespace {

using runtime::Task;
using std::chrono::milliseconds;

constexpr size_t kEntriesMax = 64;
constexpr base::Backoff::Limits kLooks{milliseconds(100), milliseconds(2'000)};
constexpr base::Backoff::Limits kNotices{milliseconds(1'000), milliseconds(60'000)};

}  // namespace

UnknownCommits::UnknownCommits(pg::Link& link) : link_(link), looks_(kLooks), pause_(link.loop()) {}

void UnknownCommits::add(model::DeliveryRange range) {
  if (is_stopping_) return;
  const auto& backends = link_.lost_backends();
  if (entries_.size() < kEntriesMax) {
    entries_.push_back({range, backends, {}, base::BootClock::now(), base::Backoff(kNotices)});
  } else {
    Entry& last = entries_.back();
    last.range.first = std::min(last.range.first, range.first);
    last.range.last = std::max(last.range.last, range.last);
    last.backends = backends;
    last.since.reset();
    last.notify_at = base::BootClock::now();
  }
  looks_.reset();
  pause_.notify();
  if (running_.running() == 0) running_.spawn(run());
}

Task<void> UnknownCommits::stop() {
  is_stopping_ = true;
  pause_.notify();
  co_await running_.join();
  is_stopping_ = false;
}

Task<void> UnknownCommits::run() {
  while (!entries_.empty() && !is_stopping_) {
    try {
      co_await look();
    } catch (const pg::Error& error) {
      telemetry::log_debug("unknown_deliveries_not_logged").field("error", error.what());
    }
    if (!entries_.empty() && !is_stopping_) co_await pause_.wait_for(looks_.next());
  }
}

// Checks each entry once. The entry that is being checked stays in front until its result arrives.
Task<void> UnknownCommits::look() {
  for (size_t left = entries_.size(); left > 0 && !is_stopping_; --left) {
    const bool is_open = co_await may_commit(entries_.front());
    if (is_open) entries_.push_back(std::move(entries_.front()));
    entries_.pop_front();
  }
}

Task<bool> UnknownCommits::may_commit(Entry& entry) {
  const auto now = base::BootClock::now();
  const bool is_notice_due = now >= entry.notify_at;
  std::vector<int32_t> pids;
  std::vector<base::Timestamp> started_at;
  for (const pg::Backend& backend : entry.backends) {
    pids.push_back(backend.pid);
    started_at.push_back(backend.started_at);
  }
  const auto rows = co_await link_.run(sql::log_unknown_commit{.pids = pids,
                                                               .started_at = started_at,
                                                               .is_pooled = !link_.is_session_ours(),
                                                               .since = entry.since,
                                                               .first_id = entry.range.first.uuid,
                                                               .last_id = entry.range.last.uuid,
                                                               .notify = is_notice_due});
  const auto row = rows.front();
  if (!entry.since) entry.since = row.looked_at;
  if (is_notice_due) entry.notify_at = now + entry.notify_pauses.next();
  co_return row.may_commit;
}

}  // namespace postrider::publish
