// Step "attempt": sign, post, and note what happened. No database transaction is open here.
#pragma once

#include <optional>

#include "postrider/delivery/lane_config.hpp"
#include "postrider/delivery/outcome.hpp"
#include "postrider/delivery/row.hpp"
#include "postrider/delivery/settle.hpp"
#include "postrider/http/client.hpp"
#include "postrider/model/id_source.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::delivery {

struct AttemptResult {
  std::optional<Outcome> outcome;  // nothing: canceled by this node, there is no result
  AttemptFacts facts;
  std::optional<http::BlockedReason> blocked_reason;
};

struct AttemptTools {
  http::Client& client;
  const model::IdSource& clock;
  size_t answer_bytes_max;
};

// What `attempt` is made of, for a send that is not a delivery: the header lines, signed at that time, with
// the custom ones last; and what an exchange came to.
std::string attempt_headers(const LaneConfig& config, const Row& row, base::Timestamp now);
AttemptFacts attempt_facts(const http::Exchange& exchange, base::Timestamp started_at);

// `config` and `row` (whose body is in memory) stay until it is done. Never throws for what an endpoint does.
runtime::Task<AttemptResult> attempt(AttemptTools tools, const LaneConfig& config, const Row& row);

}  // namespace postrider::delivery
