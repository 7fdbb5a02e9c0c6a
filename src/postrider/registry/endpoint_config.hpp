// Everything the delivery engine needs to know about an endpoint, loaded for many endpoints in one statement.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "postrider/base/time.hpp"
#include "postrider/crypto/master_keys.hpp"
#include "postrider/crypto/signing_key.hpp"
#include "postrider/model/endpoint_enums.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/pg/connection.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/registry/allow_networks.hpp"
#include "postrider/registry/pause_span.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::registry {

struct ActiveSecret {
  std::string text;                           // outside form, as SigningKey::from_secret reads it
  std::optional<base::Timestamp> expires_at;  // end of an overlap; none: the current one
};

// Kept by every lane, so it holds nothing that is decoded once.
struct EndpointConfig {
  model::EndpointId id;
  std::string public_id;
  model::TenantId tenant_id;
  int bucket = 0;
  model::EndpointStatus status = model::EndpointStatus::active;
  model::TenantStatus tenant_status = model::TenantStatus::active;

  int url_version = 1;
  int max_attempts = 8;
  int timeout_ms = 10'000;
  int give_up_seconds = 259'200;
  int max_in_flight = 10;
  std::optional<double> rate_per_second;
  model::Ordering ordering = model::Ordering::none;
  model::OnRejected on_rejected = model::OnRejected::dead_letter;
  bool is_breaker_open = false;                    // as last recorded by an owner
  std::string held_reason;                         // the same; empty: not held
  bool is_failing = false;                         // the same
  int failures = 0;                                // the same: exchanges without a success since, up to ten
  std::optional<base::Timestamp> last_success_at;  // the same

  crypto::SignatureScheme signature = crypto::SignatureScheme::standard;
  std::string header_lines;  // custom headers, "name: value\r\n" each

  std::optional<int> tenant_max_in_flight;
  std::optional<double> tenant_rate_per_second;

  // Pauses of the endpoint, of its tenant and of everything, and times when nothing could be signed, as of
  // when this was loaded: in order, not overlapping, and only those that a delivery which has not expired can
  // have seen.
  std::vector<PauseSpan> pause_spans;
  // When no node served its bucket, as far as that still matters. In order.
  std::vector<PauseSpan> unserved_spans;

  // Rows created up to then are to be canceled before anything else is sent.
  std::optional<base::Timestamp> cancel_before;
  std::optional<std::string> cancel_reason;  // set by retention, with the reason

  // A secret or the custom headers cannot be decrypted (a missing master key): hold the lane, send nothing
  // and dead-letter nothing. Secrets and `header_lines` are then empty.
  bool unreadable = false;

  bool is_strict() const { return ordering == model::Ordering::strict; }
  // True if deliveries may be sent. Otherwise the statuses decide what happens to them.
  bool is_sending() const {
    return status == model::EndpointStatus::active && tenant_status == model::TenantStatus::active &&
           !unreadable;
  }
};

// As it comes from the database.
struct LoadedEndpoint : EndpointConfig {
  std::string url;
  AllowedNetworks networks;
  std::string retry_schedule = "null";  // JSON, as RetrySchedule::from_json reads it
  // The current one first, then, during overlaps, older ones from the newest to the oldest. Those that had
  // expired when it was loaded are left out; compare expires_at before signing.
  std::vector<ActiveSecret> secrets;
};

// The profile under which requests to the endpoint's URL are dialled; null: the client's own. To be called
// on the client's thread.
std::shared_ptr<const http::DialProfile> profile_of(http::Client& client, const LoadedEndpoint& endpoint);

// In no particular order; an id that does not exist is left out (endpoints are soft-deleted, so that only
// happens for an id that never was one). One round trip. Throws pg::Error.
runtime::Task<std::vector<LoadedEndpoint>> load_endpoint_configs(pg::Link& link,
                                                                 std::span<const model::EndpointId> ids,
                                                                 const crypto::MasterKeys& keys);
runtime::Task<std::vector<LoadedEndpoint>> load_endpoint_configs(pg::Connection& connection,
                                                                 std::span<const model::EndpointId> ids,
                                                                 const crypto::MasterKeys& keys);

}  // namespace postrider::registry
