#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace postrider::pg {

using Milliseconds = std::chrono::milliseconds;

// The address of the database, and the settings of a session. Zero turns a timeout off.
struct ConnectOptions {
  std::string url;  // URI or key=value string; may name several hosts. It overrides the defaults below
  std::string application_name = "postrider";

  Milliseconds connect_timeout{5'000};  // over all hosts together
  // If the server sends nothing for this long while a result is outstanding, the connection is closed. Longer
  // than statement_timeout, so that it applies only when the server or the network hangs.
  Milliseconds response_timeout{45'000};
  Milliseconds tcp_user_timeout{10'000};

  Milliseconds statement_timeout{30'000};
  Milliseconds idle_in_transaction_timeout{30'000};
  Milliseconds lock_timeout{0};
  std::string plan_cache_mode = "auto";
  // Off for statements whose tables all become large: a plan made while a day's partition is new and
  // tiny would otherwise read the whole of it until the next analyze.
  bool enable_seqscan = true;
  std::optional<std::string> synchronous_commit;  // the server's setting when empty
  std::string search_path = "postrider";
  // False behind a transaction pooler, where settings belong to the role (ALTER ROLE … SET).
  bool is_session_ours = true;
  // False behind a pooler that does not keep prepared statements: each statement is sent without a name, and
  // parsed and planned each time.
  bool keeps_statements = true;

  size_t in_flight_max = 64;    // batches sent whose results are outstanding
  size_t waiting_max = 10'000;  // batches not yet sent; beyond it run() throws Error(unavailable)

  // For the hot statements: plans that do not depend on the parameters, made once.
  static ConnectOptions engine(std::string url);
};

}  // namespace postrider::pg
