// Stores verified messages: one transaction for as many as arrived together, one row per source and key and,
// where the source asks for it, per content. Callers get their results after the commit.
//
// One receiver per loop, on a link that others may use, too; used on that loop only.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "postrider/base/unique_function.hpp"
#include "postrider/inbox/message.hpp"
#include "postrider/inbox/metrics.hpp"
#include "postrider/model/id_source.hpp"
#include "postrider/pg/batcher.hpp"
#include "postrider/pg/link.hpp"

namespace postrider::inbox {

enum class Stored {
  stored,
  duplicate,          // it was there already, committed
  duplicate_content,  // its content was, under another id; nothing is kept of this one
  unacceptable,       // the database rejects this message
  overloaded,         // nothing was tried
  unavailable,        // no database; whether it was stored may be unknown, and sending it again is safe
};

struct ReceiverOptions {
  int buckets = 64;
  pg::BatchLimits limits{};
  std::chrono::milliseconds give_up_after{10'000};  // without a database, since the message came
};

class Receiver {
 public:
  Receiver(runtime::Loop& loop, pg::Link& link, model::IdSource& ids, const telemetry::Metrics& metrics,
           ReceiverOptions options);
  ~Receiver();  // stop() was awaited, or nothing was ever received
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  // Called on the loop after each commit that stored something, with the sources. The
  // callee coalesces wake-ups.
  void on_stored(base::UniqueFunction<void(std::vector<SourceId> sources)> callback);

  // Does not throw.
  runtime::Task<Stored> store(NewMessage message);

  // Returns when every accepted message has its result. Store nothing afterwards.
  runtime::Task<void> stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The partition's slice; consumers may divide work by it.
int bucket_of(const NewMessage& message, model::MessageId id, int buckets);

}  // namespace postrider::inbox
