// Fans out events of tenants with very many endpoints: a chunk of endpoints at a time, each chunk one
// transaction that writes queue rows and moves the task's cursor. Any node may continue where another
// stopped; nothing is queued twice.
//
// One per node is enough; it shares a link. Used on one loop, except notify().
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "postrider/base/unique_function.hpp"
#include "postrider/model/handoff.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/service.hpp"

namespace postrider::publish {

struct WideFanoutOptions {
  model::NodeId node_id{};
  int chunk_endpoints = 2'000;
  std::chrono::milliseconds poll{1'000};  // for tasks that other nodes left

  void validate() const;
};

class WideFanout : public runtime::Service {
 public:
  WideFanout(runtime::Loop& loop, pg::Link& link, model::Handoff& handoff, WideFanoutOptions options);
  ~WideFanout() override;

  // As Publisher::on_committed.
  void on_committed(base::UniqueFunction<void(const std::vector<int>& buckets)> callback);

  void notify();  // there is a new task; any thread, between start() and stop()

  // One chunk of one task; false when there is none to do. Throws pg::Error.
  runtime::Task<bool> fan_out_chunk();

 private:
  runtime::Task<runtime::SteadyTime> pass(runtime::SteadyTime now) override;
  runtime::Task<void> finish() override;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postrider::publish
