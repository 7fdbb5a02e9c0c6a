// Ends deliveries at their deadline, whatever keeps them from being sent: an open breaker, Retry-After,
// rates, caps, the order of a strict endpoint.
//
// A pass looks at the rows in memory every other second. That finds all of a lane's rows that wait for their
// first attempt, because they are read in the order of their creation: if those in memory have not expired,
// those behind them have not either, and when they have, the next ones are read. Retries are read in the
// order of their due time, so if some are in the table only, the table is searched.
//
// At most kExpiriesMax are being written at a time, the lanes take turns, and a search reads a small page
// at a time. So however many expire at once, sending gets the larger part of the connection.
#pragma once

#include <deque>
#include <unordered_set>
#include <vector>

#include "postrider/delivery/lanes/lane_table.hpp"
#include "postrider/delivery/sender.hpp"
#include "postrider/pg/link.hpp"

namespace postrider::delivery {

struct ExpirerTools {
  runtime::Loop& loop;
  pg::Link& link;
  LaneTable& lanes;
  Sender& sender;
};

class Expirer {
 public:
  static constexpr size_t kExpiriesMax = 250;
  static constexpr size_t kRowsPerTurn = 50;  // of one lane

  explicit Expirer(ExpirerTools tools);

  // Something about a lane changed: rows were read, or the end of one was written.
  void changed(const LanePtr& lane);

  void abandon();
  runtime::Task<void> stop();

 private:
  void pass();
  void list(const LanePtr& lane);
  void pump_soon();
  void pump();
  // Ends up to `most` rows in memory. True: there are more.
  bool expire_some(const LanePtr& lane, size_t most);
  runtime::Task<void> search_all();
  runtime::Task<void> search(LanePtr lane);
  struct Page;
  runtime::Task<Page> read_page(LanePtr lane, RowKey after, base::Timestamp cutoff);
  void expire_found(const LanePtr& lane, QueueRow row);
  bool is_open(const Lane& lane) const;

  ExpirerTools tools_;
  runtime::Timer timer_;
  std::deque<LanePtr> turns_;               // have expired rows in memory
  std::unordered_set<const Lane*> listed_;  // in turns_
  std::deque<LanePtr> searches_;
  base::SteadyTime searched_at_{};
  runtime::Wakeup room_;  // some of those being written are
  bool is_searching_ = false;
  bool is_pump_posted_ = false;
  bool is_stopping_ = false;
  runtime::TaskGroup tasks_;
};

}  // namespace postrider::delivery
