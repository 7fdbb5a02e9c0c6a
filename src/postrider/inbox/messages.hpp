// The inbox for people: lists messages with their status, and retries or discards them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "postrider/base/time.hpp"
#include "postrider/inbox/sources.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::inbox {

struct Message {
  model::MessageId id;
  SourceId source_id;
  std::optional<std::string> provider_id;
  std::optional<std::string> partition_key;
  int32_t bucket = 0;
  std::string headers;  // JSON
  std::string body;
  std::string status;  // pending, processing, retrying, done, dead, discarded
  int32_t attempts = 0;
  std::optional<std::string> last_error;
  std::optional<std::string> event_id;
  base::Timestamp received_at{};
  std::optional<base::Timestamp> done_at;
  std::optional<base::Timestamp> dead_at;
  std::optional<std::string> leased_by;
  std::optional<base::Timestamp> due_at;  // the end of the lease, or the next try
};

struct MessageFilter {
  SourceId source;
  std::optional<std::string> status;  // as stored: pending, done, dead, discarded
  std::optional<base::Timestamp> since, until;
  std::optional<model::MessageId> before;  // the last one of the page before
  int limit = 50;
};
struct MessagePage {
  std::vector<Message> messages;
  std::optional<model::MessageId> next;  // the next page begins after this one; none: there is no next page
};
// The newest first. A status that no index knows is looked for among a limited number of messages, so a page
// may be short, or empty, although more follows.
runtime::Task<MessagePage> list_messages(pg::Link& link, MessageFilter filter);
runtime::Task<std::optional<Message>> find_message(pg::Link& link, SourceId source, model::MessageId id);

// The messages to repair: these, or (none given) up to `repair_max` of the oldest dead ones.
struct Repair {
  SourceId source;
  std::vector<model::MessageId> ids;
  std::optional<std::string> reason;
};
inline constexpr int repair_max = 1'000;
// Returns the number of messages, which are due at once. Both are written to the audit log, with the IDs.
runtime::Task<int64_t> retry_messages(pg::Link& link, const registry::Caller& caller, Repair repair);
runtime::Task<int64_t> discard_messages(pg::Link& link, const registry::Caller& caller, Repair repair);

// A row of inbox_claim.
struct Claimed {
  std::string id;
  std::string source;
  std::optional<std::string> provider_id;
  std::optional<std::string> partition_key;
  std::string headers;
  std::string body;
  int32_t attempts = 0;
  base::Timestamp received_at{};
};
struct Claim {
  std::string worker;
  SourceId source;
  int32_t count_max = 10;
  double lease_seconds = 60;
};
runtime::Task<std::vector<Claimed>> claim(pg::Link& link, const Claim& wanted);

}  // namespace postrider::inbox
