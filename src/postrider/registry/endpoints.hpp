// Endpoints: URLs of a tenant, with status, limits and retry policy.
//
// Every change is one transaction that writes to the audit log, keeps the tenant's counts right and ends with
// its note in the control log. A deleted endpoint is kept for its history, without secrets; its own id may be
// used again for a new one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "postrider/base/ip_address.hpp"
#include "postrider/base/result.hpp"
#include "postrider/base/time.hpp"
#include "postrider/base/unique_function.hpp"
#include "postrider/crypto/signing_key.hpp"
#include "postrider/model/endpoint_enums.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/registry/caller.hpp"
#include "postrider/registry/context.hpp"
#include "postrider/registry/rejection.hpp"
#include "postrider/registry/sealing.hpp"
#include "postrider/registry/subscriptions.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::registry {

// The caller's settings, validated. Defaults of numbers come from the configuration.
struct EndpointSettings {
  std::string url;
  std::optional<std::string> description;
  int32_t max_attempts = 8;
  int32_t timeout_ms = 10'000;
  int32_t give_up_seconds = 259'200;
  int32_t max_in_flight = 10;
  std::optional<double> rate_per_second;
  model::Ordering ordering = model::Ordering::none;
  std::optional<std::string> retry_schedule;  // JSON
  model::OnRejected on_rejected = model::OnRejected::dead_letter;
  crypto::SignatureScheme signature = crypto::SignatureScheme::standard;
  std::vector<base::Network> allow_networks;  // operators choose them
  std::optional<std::string> metadata;        // JSON

  bool operator==(const EndpointSettings&) const = default;
};

// Settings and their subscriptions and secrets. In an edit, unset fields stay unchanged.
struct EndpointDraft {
  EndpointSettings settings;
  std::optional<std::vector<std::string>> patterns;  // `event_types`
  std::optional<CustomHeaders> headers;
};

struct Endpoint {
  model::EndpointId id;
  std::string public_id;
  model::TenantId tenant_id;
  int32_t bucket = 0;
  EndpointSettings settings;
  std::string headers_sealed;         // empty: none
  std::vector<std::string> patterns;  // in order

  model::EndpointStatus status = model::EndpointStatus::active;
  std::optional<std::string> status_reason;
  base::Timestamp status_since{};
  model::Actor status_by = model::Actor::operator_;  // the actor that set this status
  std::optional<base::Timestamp> failing_since;
  std::optional<base::Timestamp> last_success_at;
  std::optional<base::Timestamp> last_failure_at;
  bool is_breaker_open = false;
  std::optional<base::Timestamp> breaker_since, next_probe_at;  // while the breaker is open
  int32_t failures = 0;                                         // in a row; up to a minute old
  std::optional<base::Timestamp>
      failing_counted_from;                      // failing_since and the time paused since, while active
  std::optional<base::Timestamp> last_probe_at;  // that failed, since the last success
  std::optional<std::string> last_probe_error;
  std::optional<std::string> held_reason;  // why the sending node cannot sign
  std::optional<base::Timestamp> held_since;
  int32_t revision = 1;         // for If-Match
  int32_t failed_attempts = 0;  // since failing_since, at most 100; counted only when that is long ago
  int32_t pending = 0;          // counted up to the limit given
  bool is_pending_capped = false;
  std::optional<base::Timestamp> oldest_pending_at;
  base::Timestamp created_at{};
  base::Timestamp updated_at{};
  base::Timestamp read_at{};  // the database's now

  bool is_stopped() const {
    return status == model::EndpointStatus::paused || status == model::EndpointStatus::disabled;
  }
  // "healthy", "failing" or, after half of the five days that lead to disabling and 10 attempts, "unhealthy".
  std::string_view health() const;
};

using EndpointResult = base::Result<Endpoint, Rejection>;

struct NewEndpoint {
  model::TenantId tenant;
  std::optional<std::string> own_id;
  EndpointDraft draft;
  std::optional<std::string> secret;  // made if not given
};
struct CreatedEndpoint {
  Endpoint endpoint;
  std::string secret;  // text form, shown only now
};
runtime::Task<base::Result<CreatedEndpoint, Rejection>> create_endpoint(pg::Link& link,
                                                                        const Context& context,
                                                                        const Caller& caller,
                                                                        NewEndpoint wanted);

runtime::Task<EndpointResult> find_endpoint(pg::Link& link, EndpointRef ref);

struct EndpointFilter {
  model::TenantId tenant;
  std::optional<std::string> event_type;  // those that receive it, wildcards included
  std::optional<model::EndpointStatus> status;
  std::optional<std::string> url;  // a part of it
  model::EndpointId after{};
  int limit = 50;
};
// In order of id; a tenant that does not exist is a rejection.
runtime::Task<base::Result<std::vector<Endpoint>, Rejection>> list_endpoints(pg::Link& link,
                                                                             EndpointFilter filter);

// `edit` changes the settings as they are at that moment, with the endpoint locked; false abandons the
// change. Other patterns replace the subscriptions, those that stay keep `enabled` and `versions`. A changed
// URL closes the breaker.
struct EndpointEdit {
  base::UniqueFunction<bool(EndpointDraft&)> apply;
  std::optional<std::string> secret;  // rejected if it is not an active one
};
runtime::Task<EndpointResult> change_endpoint(pg::Link& link, const Context& context, const Caller& caller,
                                              EndpointRef ref, EndpointEdit edit);

// Pausing an endpoint that is disabled is rejected; otherwise all three may be repeated. An endpoint that an
// operator paused or disabled stays so until an operator resumes it: whatever the customer asks for is
// rejected.
struct StatusChange {
  model::EndpointStatus status;  // active: resume
  std::optional<std::string> reason;
  std::optional<int32_t> only_revision = {};  // of another one nothing is changed
};
runtime::Task<EndpointResult> change_status(pg::Link& link, const Caller& caller, EndpointRef ref,
                                            StatusChange change);

// The endpoint as it was, with the count of deliveries that are canceled now; their owner does it soon.
// Customers may not delete what an operator stopped.
runtime::Task<EndpointResult> delete_endpoint(pg::Link& link, const Caller& caller, EndpointRef ref);

// Deliveries that are pending now are canceled by the node that owns the bucket; what is being sent at that
// moment is let end first. Returns the endpoint as it is now.
struct CanceledPending {
  Endpoint endpoint;  // `pending` is how many there were
  base::Timestamp before{};
};
runtime::Task<base::Result<CanceledPending, Rejection>> cancel_pending(pg::Link& link, const Context& context,
                                                                       const Caller& caller, EndpointRef ref);

}  // namespace postrider::registry
