// Messages of emit() in the log: their form, and the proof that emit() wrote them, because
// every role that may connect can write messages there. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "postrider/outbox/row.hpp"
#include "postrider/pg/replication_stream.hpp"

namespace postrider::outbox {

inline constexpr std::string_view kMessagePrefix = "postrider";

// Where a message is in the order of commits; unique, also within its transaction.
struct LogPosition {
  pg::Lsn commit{};
  pg::Lsn message{};
  auto operator<=>(const LogPosition&) const = default;
};

struct Captured {
  LogPosition position;
  std::string bytes;  // the row's data points into it, unless this is moved: see event()
  OutboxRow row;      // without data

  // The event with its data, which lives as long as this object stays where it is.
  publish::NewEvent event() const;
  std::string_view data() const;
};

// No value: it is not from emit(), or from a later postrider.
std::optional<Captured> read_message(std::string_view content, std::string_view key);

// "16/B374D848"
std::string to_text(pg::Lsn lsn);
std::optional<pg::Lsn> parse_lsn(std::string_view text);

}  // namespace postrider::outbox
