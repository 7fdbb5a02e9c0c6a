// The ids of the domain, each its own type. Inside they are uuids; outside they are a prefix and 32 hex
// digits.
#pragma once

#include <compare>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "postrider/base/time.hpp"
#include "postrider/base/uuid.hpp"

namespace postrider::model {

template <class Tag>
struct Id {
  base::Uuid uuid;

  auto operator<=>(const Id&) const = default;
  std::string public_id() const { return std::string(Tag::prefix) + uuid.hex(); }
  static std::optional<Id> from_public_id(std::string_view text) {
    if (!text.starts_with(Tag::prefix)) return std::nullopt;
    text.remove_prefix(Tag::prefix.size());
    if (text.size() != 32) return std::nullopt;
    const auto uuid = base::Uuid::from_hex(text);
    if (!uuid) return std::nullopt;
    return Id{*uuid};
  }
};

struct EventTag {
  static constexpr std::string_view prefix = "evt_";
};
struct EndpointTag {
  static constexpr std::string_view prefix = "ep_";
};
struct DeliveryTag {
  static constexpr std::string_view prefix = "dlv_";
};
struct KeyTag {
  static constexpr std::string_view prefix = "key_";
};
struct SecretTag {
  static constexpr std::string_view prefix = "sec_";
};
struct MessageTag {
  static constexpr std::string_view prefix = "msg_";
};
struct ReplayTag {
  static constexpr std::string_view prefix = "rpl_";
};
struct SessionTag {
  static constexpr std::string_view prefix = "ses_";
};
struct LinkTag {
  static constexpr std::string_view prefix = "link_";
};
struct NodeTag {
  static constexpr std::string_view prefix = "node_";
};

using EventId = Id<EventTag>;
using EndpointId = Id<EndpointTag>;
using DeliveryId = Id<DeliveryTag>;
using KeyId = Id<KeyTag>;
using SecretId = Id<SecretTag>;
using MessageId = Id<MessageTag>;
using ReplayId = Id<ReplayTag>;
using SessionId = Id<SessionTag>;
using LinkId = Id<LinkTag>;
using NodeId = Id<NodeTag>;
using TenantId = std::string;  // chosen by the caller: see is_tenant_id()

// The caller's own ids for events, endpoints, sources and outboxes: [A-Za-z0-9_-]{1,64}
bool is_caller_id(std::string_view text);

// [A-Za-z0-9_-][A-Za-z0-9_.:@-]{0,63}
bool is_tenant_id(std::string_view text);
inline constexpr std::string_view kTenantIdRule =
    "must be 1 to 64 of A-Z, a-z, 0-9, _, -, ., : and @, and not begin with ., : or @";

// Owns the operational events. Only postrider itself publishes to it.
inline constexpr std::string_view kReservedTenant = "postrider";

// The bucket of an endpoint, of this number of buckets. It never changes: the endpoint's row stores it.
int bucket_of(EndpointId endpoint, int buckets);

// The last 12 hex digits of every delivery id of this endpoint.
std::string delivery_tail_of(EndpointId endpoint);

// The first 20 hex digits of every delivery id of this event (deliveries of replays have fresh ids).
std::string delivery_head_of(EventId event);

// The id of the row of another version of the event: it begins like the event's own, as its deliveries do.
EventId version_id(EventId event, int number);

// The id of the event's delivery to the endpoint that `sample` goes to.
DeliveryId delivery_id_like(DeliveryId sample, EventId event);

// The smallest id that can be made at this time.
base::Uuid id_floor(base::Timestamp time);

// All delivery ids of events in [first, last] lie in this range.
struct DeliveryRange {
  DeliveryId first, last;
};
DeliveryRange delivery_range(EventId first, EventId last);

}  // namespace postrider::model

template <class Tag>
struct std::hash<postrider::model::Id<Tag>> {
  size_t operator()(const postrider::model::Id<Tag>& id) const noexcept {
    return std::hash<postrider::base::Uuid>()(id.uuid);
  }
};
