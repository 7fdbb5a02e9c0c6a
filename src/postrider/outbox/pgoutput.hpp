// The messages of Postgres's output plugin `pgoutput`, protocol version 1, as far as the outbox needs them:
// where a transaction begins and ends, and what pg_logical_emit_message() wrote in it. Pure.
#pragma once

#include <optional>
#include <string_view>
#include <variant>

#include "postrider/pg/replication_stream.hpp"

namespace postrider::outbox {

struct Begin {
  pg::Lsn commit;  // where the transaction's commit is
};
struct Emitted {
  bool is_transactional = false;
  pg::Lsn at{};
  std::string_view prefix;
  std::string_view content;
};
struct Commit {
  pg::Lsn end;  // after the commit: the position to confirm when the transaction is done
};
struct OtherChange {};
using Change = std::variant<Begin, Emitted, Commit, OtherChange>;

// No value: truncated or malformed.
std::optional<Change> decode(std::string_view bytes);

}  // namespace postrider::outbox
