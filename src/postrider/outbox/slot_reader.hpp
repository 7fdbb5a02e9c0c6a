// Reads a replication slot: batches of messages in the order of commits. On one loop.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "postrider/outbox/captured.hpp"
#include "postrider/telemetry/metrics.hpp"

namespace postrider::outbox {

struct SlotReaderOptions {
  pg::ConnectOptions connect = {};
  int rows_max = 500;  // of a batch
  int64_t bytes_max = 4 << 20;
};

class SlotReader {
 public:
  // Counts messages that are not emit()'s.
  SlotReader(runtime::Loop& loop, SlotReaderOptions options, telemetry::Counter ignored);

  // All tasks throw pg::Error, and so do collect() and confirm(); close() then.
  runtime::Task<void> make_slot(std::string name);
  // Messages up to `taken` are left out: they are done.
  runtime::Task<void> open(std::string name, LogPosition taken);
  bool is_open() const { return stream_ != nullptr; }
  void interrupt();  // a caller that waits gets Error(unavailable)
  void close();      // drops unconfirmed changes: the slot sends them again

  // Adds the received messages to the batch. True if there are no more for now; otherwise the batch is full.
  bool collect(std::string_view key);
  const std::vector<Captured>& batch() const { return batch_; }
  void batch_done();
  // Everything up to this position is done once the batch is.
  pg::Lsn done() const { return done_; }
  // Confirms done() to the slot. If asked to, the server responds, which advances done().
  void confirm(bool is_reply_wanted = false);
  void beat();  // keeps the connection alive while nothing is confirmed
  // Until there may be more, or the deadline.
  runtime::Task<void> wait(runtime::SteadyTime deadline);

 private:
  void accept(std::string_view bytes, std::string_view key);

  runtime::Loop& loop_;
  SlotReaderOptions options_;
  telemetry::Counter ignored_;
  std::unique_ptr<pg::ReplicationStream> stream_;
  LogPosition taken_;
  pg::Lsn transaction_{};  // the one whose messages come now: where its commit is
  std::vector<Captured> batch_;
  int64_t batch_bytes_ = 0;
  pg::Lsn done_{}, confirmed_{};
};

}  // namespace postrider::outbox
