// The events of a tenant for one stream: in order, each once, none left out.
//
// IDs are created before the commit, so an event may become visible after newer ones. New events are read
// after the newest ID that was sent; late ones are searched among the IDs of the minute before it.
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <set>
#include <string>

#include "postrider/base/time.hpp"
#include "postrider/base/uuid.hpp"
#include "postrider/history/stream.sql.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::history {

// The keys that were sent last; the oldest are dropped at the limit.
template <class Key>
class Shown {
 public:
  explicit Shown(size_t keys_max) : keys_max_(keys_max) {}
  bool add(const Key& key) {  // false: it was there
    if (!keys_.insert(key).second) return false;
    order_.push_back(key);
    if (order_.size() <= keys_max_) return true;
    keys_.erase(order_.front());
    order_.pop_front();
    return true;
  }
  bool contains(const Key& key) const { return keys_.contains(key); }

 private:
  size_t keys_max_;
  std::set<Key> keys_;
  std::deque<Key> order_;
};

class EventFollower {
 public:
  static constexpr std::chrono::seconds kLateMax{60};
  static constexpr std::chrono::seconds kLateInterval{2};
  static constexpr int kEventsAtOnce = 10;  // with their bodies, which may be large
  static constexpr int kIdsMax = 20'000;    // read to find late ones

  struct Sink {
    runtime::Loop& loop;
    std::string& out;
    bool sees_payloads = false;
  };

  // Where to start. `after`: this event was sent before; events up to a minute older are sent again, marked
  // as possible repeats. `since`: everything after that time. Neither: events from now on.
  struct Start {
    std::optional<base::Uuid> after;
    std::optional<base::Timestamp> since;  // with `after`: older events are not repeated
  };
  EventFollower(model::TenantId tenant, Start start);

  // Appends new events; true: there are more. Throws pg::Error.
  runtime::Task<bool> look(pg::Link& link, base::Timestamp now, Sink sink);

  std::optional<base::Uuid> head() const { return head_; }
  std::optional<base::Timestamp> since() const { return since_; }
  int64_t count() const { return count_; }  // sent so far

 private:
  runtime::Task<void> begin(pg::Link& link, base::Timestamp now, runtime::Loop& loop);
  runtime::Task<bool> look_for_new(pg::Link& link, Sink sink);
  runtime::Task<void> look_for_late(pg::Link& link, Sink sink);
  void show(const sql::StreamedEventRow& row, Sink sink);

  model::TenantId tenant_;
  std::optional<base::Uuid> head_;
  std::optional<base::Timestamp> since_;
  base::Uuid floor_;  // older events are not searched
  std::optional<base::Uuid> resumed_after_;
  Shown<base::Uuid> shown_{kIdsMax};
  base::SteadyTime late_due_{};
  int64_t count_ = 0;
  bool is_gap_reported_ = false;
};

// "evt_…@2026-04-08T10:15:30Z~2026-04-08T10:00:00Z": the place that a stream has reached, and where its
// events started. Each part may be missing.
struct StreamCursor {
  std::optional<base::Uuid> event;    // the newest that was sent
  std::optional<base::Timestamp> at;  // attempts that ended before this were sent
  std::optional<base::Timestamp> since;

  std::string text() const;
  static std::optional<StreamCursor> parse(std::string_view text);
};

// One server-sent event.
void append_message(std::string& out, std::string_view kind, std::string_view id, std::string_view json);

}  // namespace postrider::history
