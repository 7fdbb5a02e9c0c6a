// A tenant's events for one stream: in order, each once, none left out.
//
// Ids are made before their commit, so an event may become visible after younger ones. What is new is read
// behind the youngest id that was shown; what is late is looked for among the ids of a minute before it.
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <set>
#include <string>

#include "postrider/base/time.hpp"
#include "postrider/base/uuid.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/pg/rows.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::history {

// What was shown lately; the oldest of more is forgotten.
template <class Key>
class Shown {
 public:
  explicit Shown(size_t keys_max) : keys_max_(keys_max) {}
  bool add(const Key& key) {  // false: it was
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
  static constexpr int kEventsAtOnce = 10;  // with their bodies, which are large at worst
  static constexpr int kIdsMax = 20'000;    // looked at for late ones

  struct Sink {
    runtime::Loop& loop;
    std::string& out;
    bool sees_payloads = false;
  };

  // From where on. `after`: that one was shown before, and what is up to a minute older comes again, marked
  // as a possible repeat. `since`: everything from then on. Neither: what is published from now on.
  struct Start {
    std::optional<base::Uuid> after;
    std::optional<base::Timestamp> since;  // with `after`: what is older does not come again either
  };
  EventFollower(model::TenantId tenant, Start start);

  // Appends what is new; true: there is more at once. Throws pg::Error.
  runtime::Task<bool> look(pg::Link& link, base::Timestamp now, Sink sink);

  std::optional<base::Uuid> head() const { return head_; }
  std::optional<base::Timestamp> since() const { return since_; }
  int64_t count() const { return count_; }  // shown so far

 private:
  runtime::Task<void> begin(pg::Link& link, base::Timestamp now, runtime::Loop& loop);
  runtime::Task<bool> look_for_new(pg::Link& link, Sink sink);
  runtime::Task<void> look_for_late(pg::Link& link, Sink sink);
  void show(const pg::Rows& rows, size_t row, Sink sink);

  model::TenantId tenant_;
  std::optional<base::Uuid> head_;
  std::optional<base::Timestamp> since_;
  base::Uuid floor_;  // nothing older is looked for
  std::optional<base::Uuid> resumed_behind_;
  Shown<base::Uuid> shown_{kIdsMax};
  base::SteadyTime late_due_{};
  int64_t count_ = 0;
  bool is_gap_told_ = false;
};

// "evt_…@2026-04-08T10:15:30Z~2026-04-08T10:00:00Z": up to where a stream has come, and where its events
// began; each part may be missing.
struct StreamCursor {
  std::optional<base::Uuid> event;    // the youngest that was shown
  std::optional<base::Timestamp> at;  // attempts that ended until then were shown
  std::optional<base::Timestamp> since;

  std::string text() const;
  static std::optional<StreamCursor> parse(std::string_view text);
};

// One server-sent event.
void append_message(std::string& out, std::string_view kind, std::string_view id, std::string_view json);

}  // namespace postrider::history
