// Runs range replays: first counts the matches, then creates the new deliveries at the requested rate.
//
// Every step is one transaction that creates deliveries, resolves their dead letters, counts them and moves
// the replay's cursor, so a node that dies in between loses and repeats nothing. A replay belongs to one node
// at a time, by a lease on its row; another node takes it over when the lease expires. Used on one loop.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "postrider/base/unique_function.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/service.hpp"

namespace postrider::replay {

struct RunnerOptions {
  model::NodeId node_id{};
  int lease_seconds = 10;
  int replays_max = 8;  // that this node runs at the same time, each of another tenant
  int step_deliveries_max = 1'000;
  int step_rows_max = 2'000;              // that one step scans
  std::chrono::milliseconds poll{1'000};  // for replays that wait or were released by other nodes
  std::chrono::milliseconds pace{100};    // between two steps of a replay that has reached its rate

  void validate() const;
};

class ReplayRunner : public runtime::Service {
 public:
  // The link has custom plans: see candidates.sql.
  ReplayRunner(runtime::Loop& loop, pg::Link& link, RunnerOptions options);
  ~ReplayRunner() override;

  // Called after deliveries were committed; their owners may be on other nodes.
  void on_committed(base::UniqueFunction<void()> callback);

 private:
  // Takes free replays and runs one step of each replay whose rate allows it. The next pass is due at once if
  // there is more to do.
  runtime::Task<runtime::SteadyTime> pass(runtime::SteadyTime now) override;
  runtime::Task<void> finish() override;  // leaves its replays to other nodes

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postrider::replay
