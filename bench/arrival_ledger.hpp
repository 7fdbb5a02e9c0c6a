// Which numbered events have arrived, when, and which are being answered right now.
//
// Both tables are sparse mappings indexed by the event's number: a million numbers cost what they touch. The
// arrival times may be backed by a file (one native-endian u64 per number, 0 = never), to be read by others.
#pragma once

#include <cstdint>
#include <string>

#include "net.hpp"

namespace bench {

class ArrivalLedger {
 public:
  static constexpr std::uint64_t numbers_max = 64'000'000;

  struct Counts {
    std::uint64_t unique = 0;
    std::uint64_t duplicates = 0;
    std::uint64_t overlaps = 0;      // arrived while an earlier sending of the same number was unanswered
    std::uint64_t out_of_range = 0;  // numbers that do not fit the ledger
  };

  explicit ArrivalLedger(const std::string& times_path);  // "" keeps the times in memory
  ~ArrivalLedger();
  ArrivalLedger(const ArrivalLedger&) = delete;
  ArrivalLedger& operator=(const ArrivalLedger&) = delete;

  void arrive(std::uint64_t number, std::uint64_t at_ns);  // also begins its being in flight
  void leave(std::uint64_t number);                        // answered, or its connection closed
  void clear();
  const Counts& counts() const { return counts_; }

 private:
  Descriptor times_file_;
  std::uint64_t* times_ = nullptr;
  Descriptor open_file_;
  std::uint8_t* open_ = nullptr;  // sendings under way per number
  Counts counts_;
};

}  // namespace bench
