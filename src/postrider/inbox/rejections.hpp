// Counts rejected requests and duplicates that were dropped. Operators see the counts in the metrics at
// once, and per source in the database every few seconds. Senders do not see them.
// Threads: any.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "postrider/inbox/metrics.hpp"
#include "postrider/inbox/sources.hpp"
#include "postrider/inbox/verify.hpp"

namespace postrider::inbox {

class Rejections {
 public:
  explicit Rejections(const telemetry::Metrics& metrics) : metrics_(metrics) {}

  void count(const SourceId& source, const InboundRejection& rejection, base::Timestamp at);
  // Dropped by content; the metric is the receiver's. `detail` names the id under which it came.
  void count_dropped(const SourceId& source, std::string detail, base::Timestamp at);
  // Writes the counts since the last write, and keeps them if that fails. Throws pg::Error.
  runtime::Task<void> write(pg::Link& link);

 private:
  struct Sum {
    int64_t count = 0;
    base::Timestamp last_at{};
    std::string last_detail;
  };
  using Sums = std::map<std::pair<SourceId, std::string_view>, Sum>;
  void add(const SourceId& source, std::string_view reason, std::string detail, base::Timestamp at);
  void add(const Sums& sums);

  Metrics metrics_;
  std::mutex mutex_;
  Sums sums_;
};

}  // namespace postrider::inbox
