// Makes time-ordered ids (UUIDv7): 48 bits of milliseconds, 12 bits of sequence, a bit that is 0, 13 bits of
// node slot, 48 random. (Where that bit is 1, the outbox made the id: 08_outbox_publish.sql.)
//
// The first 10 bytes are unique among all nodes, because a delivery id keeps only these of its event's id.
// The time is the database's plus what this machine's monotonic clock counted since, so a wrong wall clock
// cannot put an id into a partition that does not exist. Any thread may call next().
#pragma once

#include <cstdint>
#include <mutex>

#include "postrider/base/time.hpp"
#include "postrider/base/uuid.hpp"

namespace postrider::model {

class IdSource {
 public:
  static constexpr int kSlots = 1 << 13;

  IdSource() = default;
  IdSource(const IdSource&) = delete;
  IdSource& operator=(const IdSource&) = delete;

  // `database_now` as read at `read_at`. Called at start, and again whenever the node registers anew. Time
  // never runs backwards: IDs continue from the last one if the database's clock was set back.
  void synchronise(int slot, base::Timestamp database_now, base::SteadyTime read_at);
  // The same while the slot is unchanged; the clock may be set at any time. A difference that the reading
  // itself explains
  // (`uncertainty`) changes nothing, so that time advances evenly.
  void correct(base::Timestamp database_now, base::SteadyTime read_at, base::Microseconds uncertainty);
  bool is_ready() const;

  base::Uuid next();
  base::Timestamp now() const;  // the database's time, as far as this node knows

 private:
  base::Timestamp now_locked() const;

  mutable std::mutex mutex_;
  int slot_ = -1;
  base::Timestamp database_now_{};
  base::SteadyTime read_at_{};
  int64_t last_ms_ = 0;
  int sequence_ = 0;
};

}  // namespace postrider::model
