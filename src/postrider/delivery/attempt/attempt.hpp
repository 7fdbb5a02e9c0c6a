// Step "attempt": sign, post, and note what happened. No database transaction is open here.
#pragma once

#include <optional>
#include <string>

#include "postrider/base/result.hpp"
#include "postrider/delivery/attempt/lane_config.hpp"
#include "postrider/delivery/attempt/outcome.hpp"
#include "postrider/delivery/attempt/row.hpp"
#include "postrider/http/client/client.hpp"
#include "postrider/model/id_source.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::delivery {

// The facts about one attempt that the history stores.
struct AttemptFacts {
  bool is_exchange = true;  // false: it ended without one, for example because it expired
  std::optional<int> status_code;
  std::optional<std::string> error;         // a word
  std::optional<std::string> error_detail;  // a sentence
  base::Timestamp started_at{};
  std::optional<int> lookup_us, connect_us, tls_us, send_us, first_byte_us;
  int total_us = 0;
  std::optional<std::string> preview;
  std::optional<std::string> address;
  std::optional<int> url_version;  // of the URL that was dialled
  std::optional<int> bytes_sent;
  std::optional<int> bytes_received;  // of the response's body
  bool is_reused = false;             // went over a pooled connection
  bool is_resent = false;             // two requests: the first one went over a connection that was closed
  bool is_truncated = false;          // the response has more than the preview
  std::optional<std::string> content_type;
  std::optional<std::string> response_headers;  // redacted; not of a 2xx

  int requests() const { return !is_exchange ? 0 : is_resent ? 2 : 1; }
  int flags() const { return (is_reused ? 1 : 0) | (is_resent ? 2 : 0) | (is_truncated ? 4 : 0); }
};

struct AttemptResult {
  std::optional<Outcome> outcome;  // nothing: canceled by this node, there is no result
  AttemptFacts facts;
  std::optional<http::BlockedReason> blocked_reason;
};

struct AttemptTools {
  http::Client& client;
  const model::IdSource& clock;
  size_t response_bytes_max;
  std::string_view user_agent;  // outlives the attempt
};

// What `attempt` is made of, for a send that is not a delivery: the header lines, signed at that time, with
// the custom ones last, or why they cannot be written; and what an exchange came to.
base::Result<std::string, std::string> attempt_headers(const LaneConfig& config, const QueueRow& row,
                                                       base::Timestamp now, std::string_view user_agent);
// It takes the texts of the response out of the exchange.
AttemptFacts attempt_facts(http::Exchange exchange, base::Timestamp started_at);

// `config` and `row` (whose body is in memory) stay until it is done. Never throws for what an endpoint does.
runtime::Task<AttemptResult> attempt(AttemptTools tools, const LaneConfig& config, const QueueRow& row);

}  // namespace postrider::delivery
