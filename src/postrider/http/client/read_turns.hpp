// Limits how many bytes from receivers are read in one turn of the loop.
//
// One receiver that sends faster than its response can be parsed would otherwise keep the loop to itself. A
// reader that has used up its share, or finds the share of all readers used up, waits for the next turn. The
// loop runs everything else that is due in between.
#pragma once

#include <cstddef>

#include "postrider/http/client/intrusive_list.hpp"
#include "postrider/runtime/loop.hpp"

namespace postrider::http {

class ReadTurns {
 public:
  static constexpr size_t kReaderBytesMax = 64 * 1024;  // of one reader
  static constexpr size_t kTurnBytesMax = 512 * 1024;   // of all readers together

  // A reader in line for the next turn. Destroying it, or leaving the line, is always safe.
  class Place : public ListHook<ReadTurns> {
   public:
    virtual void on_turn() = 0;
    void leave_line() { ListHook<ReadTurns>::unlink(); }

   protected:
    Place() = default;
    ~Place() = default;
  };

  explicit ReadTurns(runtime::Loop& loop) : timer_(loop) {}

  void spend(size_t bytes) { spent_ += bytes; }
  bool is_used_up() const { return spent_ >= kTurnBytesMax; }
  void join_line(Place& place);

 private:
  void arm();
  void run();

  runtime::Timer timer_;
  IntrusiveList<Place, ReadTurns> line_;  // first come, first served
  size_t spent_ = 0;
};

}  // namespace postrider::http
