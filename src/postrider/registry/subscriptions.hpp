// Subscriptions: which event types an endpoint receives.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "postrider/base/result.hpp"
#include "postrider/base/unique_function.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/pg/batch.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/registry/caller.hpp"
#include "postrider/registry/rejection.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::registry {

struct Subscription {
  std::string pattern;                               // a type, a prefix ending in .*, or *
  bool enabled = true;                               // a disabled one matches nothing
  std::optional<std::vector<std::string>> versions;  // of the event; none: any

  bool operator==(const Subscription&) const = default;
};
using Subscriptions = std::vector<Subscription>;  // in order of pattern, no pattern twice

struct EndpointRef {
  model::TenantId tenant;
  std::string endpoint;  // public ID
};

using SubscriptionsResult = base::Result<Subscriptions, Rejection>;

runtime::Task<SubscriptionsResult> find_subscriptions(pg::Link& link, EndpointRef ref);

// Exactly these from now on.
runtime::Task<SubscriptionsResult> replace_subscriptions(pg::Link& link, const Caller& caller,
                                                         EndpointRef ref, Subscriptions subscriptions);

// `edit` changes one that is there, but not its pattern; false abandons the change.
using SubscriptionEdit = base::UniqueFunction<bool(Subscription&)>;
runtime::Task<base::Result<Subscription, Rejection>> change_subscription(pg::Link& link, const Caller& caller,
                                                                         EndpointRef ref, std::string pattern,
                                                                         SubscriptionEdit edit);

// For changes of an endpoint that include its subscriptions.
struct EndpointKey {
  model::EndpointId id;
  model::TenantId tenant;
};
void add_subscriptions(pg::Batch& batch, const EndpointKey& endpoint, const Subscriptions& subscriptions);
// Subscribes to exactly these patterns; those that were there keep `enabled` and `versions`.
void add_patterns(pg::Batch& batch, const EndpointKey& endpoint, const std::vector<std::string>& patterns);

}  // namespace postrider::registry
