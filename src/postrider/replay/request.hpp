// Requests for replays, and their progress. The caller is recorded with the replay and in the audit log.
//
// A replay of one delivery creates the new delivery at once. A replay of a range is a row that a ReplayRunner
// of any node takes and runs.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/base/time.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/registry/caller.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::replay {

// The number of single deliveries that one key may replay per second, over all nodes.
inline constexpr int kSinglesPerSecondMax = 10;

enum class Scope {
  failed,   // unresolved dead letters
  missing,  // events that an endpoint is subscribed to and never had a delivery of
  all,      // every event that an endpoint is subscribed to
};
std::string_view label(Scope scope);
std::optional<Scope> parse_scope(std::string_view text);

struct SingleRequest {
  model::TenantId tenant;
  model::DeliveryId delivery;
  std::string reason;
  std::optional<base::Timestamp> not_before{};
};

struct Single {
  enum class Result { made, unknown_delivery, endpoint_inactive, event_gone, event_erased, too_fast };
  Result outcome = Result::made;
  model::ReplayId replay{};      // set if made, as is `delivery`
  model::DeliveryId delivery{};  // the new one
};
runtime::Task<Single> replay_delivery(pg::Link& link, const registry::Caller& caller, SingleRequest request);

// Empty filters match everything.
struct Range {
  model::TenantId tenant;
  Scope scope = Scope::failed;
  std::optional<model::EndpointId> endpoint{};
  std::optional<std::vector<std::string>> event_types{};  // patterns
  std::optional<std::vector<std::string>> causes{};       // Scope::failed only
  std::optional<std::vector<base::Uuid>> deliveries{};    // Scope::failed only: these dead letters
  base::Timestamp since{};  // when the delivery (failed) or the event (others) was created: inclusive
  base::Timestamp until{};  // exclusive
};
struct RangeRequest {
  Range range;
  double rate_per_second = 50;
  std::string reason;
};
runtime::Task<model::ReplayId> request_range(pg::Link& link, const registry::Caller& caller,
                                             RangeRequest request);
// Several at once, all or none: the IDs are in the order of the requests.
runtime::Task<std::vector<model::ReplayId>> request_ranges(pg::Link& link, const registry::Caller& caller,
                                                           const std::vector<RangeRequest>& requests);

// The tenants with unresolved dead letters that a range matches, in order of ID; the range's tenant and
// endpoint do not count. At most `limit`. With `deliveries`, those of each tenant; otherwise none.
struct TenantWithDeadLetters {
  model::TenantId tenant;
  std::optional<std::vector<base::Uuid>> deliveries{};
};
runtime::Task<std::vector<TenantWithDeadLetters>> find_tenants(pg::Link& link, const Range& range, int limit);

// The place that the search of a range has reached: dead letters are in the order of their delivery IDs,
// events in the order of their IDs and then endpoints.
struct Cursor {
  base::Uuid id;
  base::Uuid endpoint;
};

// A dry run. Each look reads a limited number of rows, so that the connection can be released in between.
class MatchCount {
 public:
  explicit MatchCount(Range range);
  runtime::Task<void> look(pg::Link& link);  // until is_complete()
  int64_t matched() const { return matched_; }
  bool is_complete() const { return is_complete_; }

 private:
  Range range_;
  Cursor cursor_;
  int64_t matched_ = 0;
  bool is_complete_ = false;
};

struct Replay {
  model::ReplayId id;
  std::string kind, status;
  std::optional<std::string> scope, endpoint;
  std::optional<std::vector<std::string>> event_types;
  std::optional<base::Timestamp> since, until;
  std::optional<double> rate_per_second;
  std::string reason, requested_by;
  model::Actor on_behalf_of = model::Actor::operator_;
  std::optional<model::DeliveryId> delivery;  // kind delivery: the old one
  bool is_counted = false;                    // until then, matched keeps growing
  int64_t matched = 0, queued = 0, delivered = 0, failed = 0, canceled = 0;
  base::Timestamp created_at{};
  std::optional<base::Timestamp> started_at, finished_at;
};
runtime::Task<std::optional<Replay>> find_replay(pg::Link& link, model::TenantId tenant, model::ReplayId id);

struct ListFilter {
  model::TenantId tenant;
  std::optional<std::string> status{};
  std::optional<model::ReplayId> before{};  // the last one of the previous page
  int limit = 50;
};
// Newest first.
runtime::Task<std::vector<Replay>> list_replays(pg::Link& link, ListFilter filter);

// Deliveries that are queued already are sent; no more are created. False: it has ended, or there is no such
// replay.
struct CancelRequest {
  model::TenantId tenant;
  model::ReplayId id;
  std::optional<std::string> reason{};
};
runtime::Task<bool> cancel_replay(pg::Link& link, const registry::Caller& caller, CancelRequest request);

struct FoundEndpoint {
  model::EndpointId id;
  bool is_active = false;  // or paused: replays are queued for both
};
runtime::Task<std::optional<FoundEndpoint>> find_endpoint(pg::Link& link, model::TenantId tenant,
                                                          std::string public_id);
// The tenants that have an endpoint with this ID; two are enough to know that it is ambiguous.
runtime::Task<std::vector<model::TenantId>> find_endpoint_tenants(pg::Link& link, std::string public_id);

}  // namespace postrider::replay
