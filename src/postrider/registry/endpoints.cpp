#include "postrider/registry/endpoints.hpp"

#include <algorithm>
#include <utility>

#include "postrider/model/event_type.hpp"
#include "postrider/registry/allow_networks.hpp"
#include "postrider/registry/audit.hpp"
#include "postrider/registry/columns.hpp"
#include "postrider/registry/control_log.hpp"
#include "postrider/registry/endpoint_rows.hpp"
#include "postrider/registry/endpoints.sql.hpp"
#include "postrider/registry/secrets.sql.hpp"
#include "postrider/registry/subscriptions.sql.hpp"
#include "postrider/registry/tenants.sql.hpp"

namespace postrider::registry {

namespace {

using model::EndpointId;
using model::EndpointStatus;
using runtime::Task;

std::vector<base::Uuid> one(const base::Uuid& id) {
  return {id};
}

int32_t strict_count(const EndpointSettings& settings) {
  return settings.ordering == model::Ordering::strict ? 1 : 0;
}

std::optional<pg::Bytes> bytes_or_null(const std::string& sealed) {
  if (sealed.empty()) return std::nullopt;
  return pg::Bytes{sealed};
}

std::string seal_headers(const Sealing& sealing, const CustomHeaders& headers) {
  return headers.empty() ? std::string() : sealing.seal_headers(headers);
}

// A change of one endpoint, for the audit log.
struct EndpointChange {
  const Caller& caller;
  EndpointKey key;
  std::string_view action;
  const crypto::MasterKeys* keys = nullptr;  // to show the names of custom headers
  const Endpoint* before = nullptr;
  std::optional<std::string> reason = {};
};

void add_audit(pg::Batch& batch, EndpointChange change, const Endpoint& after) {
  AuditEntry entry{.action = change.action, .tenant = change.key.tenant, .object = after.public_id};
  if (change.before) entry.before = snapshot(*change.before, change.keys);
  entry.after = snapshot(after, change.keys);
  entry.reason = std::move(change.reason);
  registry::add_audit(batch, change.caller, std::move(entry));
}

// Makes the change, writes it down with the endpoint as it then is, and commits.
Task<EndpointResult> finish(pg::Transaction& transaction, pg::Batch batch, EndpointChange change) {
  const EndpointKey key = change.key;
  const auto loaded =
      batch.add(sql::load_endpoints{.pending_max = pending_counted_max, .ids = one(key.id.uuid)});
  pg::Results results = co_await transaction.run(std::move(batch));
  Endpoint endpoint = std::move(read_endpoints(results.take(loaded), pending_counted_max).front());
  pg::Batch last;
  add_audit(last, std::move(change), endpoint);
  add_note(last, ChangeKind::endpoint, key.tenant, key.id);
  co_await transaction.run(std::move(last));
  co_await transaction.commit();
  co_return endpoint;
}

// Locks tenant and endpoint, in this order, and reads the endpoint as it is then.
Task<EndpointResult> lock(pg::Transaction& transaction, const Caller& caller, const EndpointRef& ref) {
  const auto [tenant_rows, endpoint_rows] =
      co_await transaction.run(sql::lock_tenant{.id = ref.tenant},
                               sql::lock_endpoint{.tenant = ref.tenant, .public_id = ref.endpoint});
  if (tenant_rows.empty()) co_return base::Failure{Rejection{RejectionKind::unknown_tenant}};
  if (endpoint_rows.empty()) co_return base::Failure{Rejection{RejectionKind::unknown_endpoint}};
  const auto loaded = co_await transaction.run(
      sql::load_endpoints{.pending_max = pending_counted_max, .ids = one(endpoint_rows.front().id)});
  Endpoint endpoint = std::move(read_endpoints(loaded, pending_counted_max).front());
  if (!caller.if_match.accepts(endpoint.revision))
    co_return base::Failure{Rejection{RejectionKind::changed_meanwhile}};
  co_return endpoint;
}

// The tenant is locked and has room for one more; the own id, if any, is free from here on.
Task<std::optional<Rejection>> make_room(pg::Transaction& transaction, const Context& context,
                                         const NewEndpoint& wanted) {
  const std::string own_id = wanted.own_id.value_or("");
  const auto [tenant_rows, freed, endpoint_rows] =
      co_await transaction.run(sql::lock_tenant{.id = wanted.tenant},
                               sql::free_public_id{.tenant = wanted.tenant, .public_id = own_id},
                               sql::find_endpoint_id{.tenant = wanted.tenant, .public_id = own_id});
  if (tenant_rows.empty()) co_return Rejection{RejectionKind::unknown_tenant};
  if (!endpoint_rows.empty()) co_return Rejection{RejectionKind::endpoint_exists};
  const int limit = tenant_rows.front().endpoints_max.value_or(context.endpoints_max);
  if (tenant_rows.front().endpoint_count >= limit) {
    Rejection rejection{RejectionKind::too_many_endpoints,
                        "The tenant has " + std::to_string(tenant_rows.front().endpoint_count) +
                            " endpoints, and its limit is " + std::to_string(limit) +
                            ". Delete one, or ask an operator to raise endpoints_max."};
    co_return rejection;
  }
  co_return std::nullopt;
}

Task<EndpointId> insert(pg::Transaction& transaction, const Context& context, const Caller& caller,
                        const NewEndpoint& wanted) {
  // If another endpoint of the tenant has the same tail (one in 2^48), the next ID is used.
  for (int tries = 0; tries < 3; ++tries) {
    const EndpointId id{context.ids.next()};
    const Sealing sealing{context.keys, id};
    const std::string sealed = seal_headers(sealing, wanted.draft.headers.value_or(CustomHeaders()));
    const EndpointSettings& settings = wanted.draft.settings;
    const auto inserted =
        co_await transaction.run(sql::insert_endpoint{.id = id.uuid,
                                                      .public_id = wanted.own_id.value_or(id.public_id()),
                                                      .tenant = wanted.tenant,
                                                      .bucket = model::bucket_of(id, context.buckets),
                                                      .delivery_tail = model::delivery_tail_of(id),
                                                      .headers_sealed = bytes_or_null(sealed),
                                                      .url = settings.url,
                                                      .description = settings.description,
                                                      .max_attempts = settings.max_attempts,
                                                      .timeout_ms = settings.timeout_ms,
                                                      .give_up_seconds = settings.give_up_seconds,
                                                      .max_in_flight = settings.max_in_flight,
                                                      .rate_per_second = settings.rate_per_second,
                                                      .ordering = model::label(settings.ordering),
                                                      .retry_schedule = json_column(settings.retry_schedule),
                                                      .on_rejected = model::label(settings.on_rejected),
                                                      .signature = crypto::label(settings.signature),
                                                      .metadata = json_column(settings.metadata),
                                                      .status_by = model::label(caller.actor),
                                                      .allow_networks = texts_of(settings.allow_networks)});
    if (!inserted.empty()) co_return id;
  }
  throw std::runtime_error("three generated endpoint IDs in a row were already in use");
}

// Checks that the active secrets suit the scheme, and that `secret`, if given, is the current one.
Task<std::optional<Rejection>> check_secrets(pg::Transaction& transaction, const Sealing& sealing,
                                             crypto::SignatureScheme scheme,
                                             std::optional<std::string> secret) {
  const auto answers = co_await transaction.run(sql::load_secrets{.endpoint = sealing.endpoint.uuid});
  bool is_current = true;
  for (const auto& row : answers) {
    const auto text = sealing.open_secret({row.id}, row.sealed.view);
    if (std::exchange(is_current, false) && secret && (!text || *text != *secret))
      co_return Rejection{RejectionKind::secret_differs};
    if (!text) continue;                // it cannot be checked; the lane is held anyway
    if (is_reference(*text)) continue;  // checked when it signs
    const auto key = crypto::SigningKey::from_secret(scheme, *text);
    if (!key) co_return Rejection{RejectionKind::secret_invalid, key.error()};
  }
  co_return std::nullopt;
}

bool is_same(const Endpoint& endpoint, const EndpointDraft& draft, const Sealing& sealing) {
  EndpointSettings settings = draft.settings;
  if (is_same_json(settings.retry_schedule, endpoint.settings.retry_schedule))
    settings.retry_schedule = endpoint.settings.retry_schedule;
  if (is_same_json(settings.metadata, endpoint.settings.metadata))
    settings.metadata = endpoint.settings.metadata;
  if (settings != endpoint.settings) return false;
  if (draft.patterns) {
    auto patterns = *draft.patterns;
    std::sort(patterns.begin(), patterns.end());
    if (patterns != endpoint.patterns) return false;
  }
  if (!draft.headers) return true;
  if (draft.headers->empty() || endpoint.headers_sealed.empty())
    return draft.headers->empty() && endpoint.headers_sealed.empty();
  const auto headers = sealing.open_headers(endpoint.headers_sealed);
  return headers && *headers == *draft.headers;
}

std::string_view action_of(EndpointStatus status) {
  switch (status) {
    case EndpointStatus::active:
      return "endpoint.resume";
    case EndpointStatus::paused:
      return "endpoint.pause";
    default:
      return "endpoint.disable";
  }
}

// The statements that turn the endpoint into the draft.
pg::Batch changes(const Endpoint& endpoint, const EndpointDraft& draft, const Sealing& sealing) {
  const EndpointKey key{endpoint.id, endpoint.tenant_id};
  const EndpointSettings& settings = draft.settings;
  const std::string sealed = draft.headers ? seal_headers(sealing, *draft.headers) : endpoint.headers_sealed;
  const bool is_other_url = settings.url != endpoint.settings.url;
  pg::Batch batch;
  batch.add(sql::update_endpoint{.headers_sealed = bytes_or_null(sealed),
                                 .is_reset = is_other_url,
                                 .url = settings.url,
                                 .description = settings.description,
                                 .max_attempts = settings.max_attempts,
                                 .timeout_ms = settings.timeout_ms,
                                 .give_up_seconds = settings.give_up_seconds,
                                 .max_in_flight = settings.max_in_flight,
                                 .rate_per_second = settings.rate_per_second,
                                 .ordering = model::label(settings.ordering),
                                 .retry_schedule = json_column(settings.retry_schedule),
                                 .on_rejected = model::label(settings.on_rejected),
                                 .signature = crypto::label(settings.signature),
                                 .allow_networks = texts_of(settings.allow_networks),
                                 .metadata = json_column(settings.metadata),
                                 .id = key.id.uuid});
  const int32_t more_strict = strict_count(settings) - strict_count(endpoint.settings);
  if (more_strict != 0)
    batch.add(sql::add_to_counts{.endpoints = 0, .strict_endpoints = more_strict, .tenant = key.tenant});
  if (more_strict > 0) batch.add(sql::ensure_position{.endpoint = key.id.uuid});
  if (draft.patterns) add_patterns(batch, key, *draft.patterns);
  return batch;
}

}  // namespace

Task<base::Result<CreatedEndpoint, Rejection>> create_endpoint(pg::Link& link, const Context& context,
                                                               const Caller& caller, NewEndpoint wanted) {
  const EndpointSettings& settings = wanted.draft.settings;
  if (wanted.own_id && wanted.own_id->starts_with(model::EndpointTag::prefix))
    co_return base::Failure{Rejection{RejectionKind::reserved_id}};
  std::string secret = wanted.secret ? *wanted.secret : crypto::generate_secret(settings.signature);
  if (const auto why = why_not_secret(context.references, settings.signature, secret))
    co_return base::Failure{Rejection{RejectionKind::secret_invalid, *why}};

  pg::Transaction transaction = co_await link.begin();
  const std::optional<Rejection> no_room = co_await make_room(transaction, context, wanted);
  if (no_room) co_return base::Failure{*no_room};
  const EndpointId id = co_await insert(transaction, context, caller, wanted);

  const EndpointKey key{id, wanted.tenant};
  const Sealing sealing{context.keys, id};
  const model::SecretId secret_id{context.ids.next()};
  const std::string sealed_secret = sealing.seal_secret(secret_id, secret);
  pg::Batch batch;
  batch.add(
      sql::insert_secret{.id = secret_id.uuid, .endpoint = id.uuid, .sealed = pg::Bytes(sealed_secret)});
  batch.add(sql::add_to_counts{
      .endpoints = 1, .strict_endpoints = strict_count(settings), .tenant = wanted.tenant});
  if (strict_count(settings) > 0) batch.add(sql::ensure_position{.endpoint = id.uuid});
  if (wanted.draft.patterns) add_patterns(batch, key, *wanted.draft.patterns);
  EndpointChange change{caller, key, "endpoint.create", &context.keys};
  EndpointResult endpoint = co_await finish(transaction, std::move(batch), std::move(change));
  CreatedEndpoint created{std::move(*endpoint), std::move(secret)};
  co_return created;
}

Task<EndpointResult> find_endpoint(pg::Link& link, EndpointRef ref) {
  const auto found =
      co_await link.run(sql::find_endpoint_id{.tenant = ref.tenant, .public_id = ref.endpoint});
  if (found.empty()) co_return base::Failure{Rejection{RejectionKind::unknown_endpoint}};
  const auto rows = co_await link.run(
      sql::load_endpoints{.pending_max = pending_counted_max, .ids = one(found.front().id)});
  co_return std::move(read_endpoints(rows, pending_counted_max).front());
}

Task<base::Result<std::vector<Endpoint>, Rejection>> list_endpoints(pg::Link& link, EndpointFilter filter) {
  std::optional<std::string_view> status;
  if (filter.status) status = model::label(*filter.status);
  std::optional<std::vector<std::string>> patterns;
  if (filter.event_type) patterns = model::patterns_matching(*filter.event_type);
  const auto [tenant_rows, id_rows] = co_await link.run(sql::is_deleted_tenant{.id = filter.tenant},
                                                        sql::list_endpoint_ids{.tenant = filter.tenant,
                                                                               .after = filter.after.uuid,
                                                                               .status = status,
                                                                               .url_part = filter.url,
                                                                               .patterns = patterns,
                                                                               .limit = filter.limit});
  if (tenant_rows.empty() || tenant_rows.front().is_deleted)
    co_return base::Failure{Rejection{RejectionKind::unknown_tenant}};
  std::vector<base::Uuid> ids;
  for (const auto& row : id_rows) ids.push_back(row.id);
  const auto rows =
      co_await link.run(sql::load_endpoints{.pending_max = pending_counted_in_list_max, .ids = ids});
  co_return read_endpoints(rows, pending_counted_in_list_max);
}

Task<EndpointResult> change_endpoint(pg::Link& link, const Context& context, const Caller& caller,
                                     EndpointRef ref, EndpointEdit edit) {
  pg::Transaction transaction = co_await link.begin();
  EndpointResult found = co_await lock(transaction, caller, ref);
  if (!found) co_return std::move(found);
  const Endpoint& endpoint = *found;
  EndpointDraft draft;
  draft.settings = endpoint.settings;
  if (!edit.apply(draft)) co_return base::Failure{Rejection{RejectionKind::abandoned}};

  const Sealing sealing{context.keys, endpoint.id};
  if (edit.secret || draft.settings.signature != endpoint.settings.signature) {
    const auto rejection =
        co_await check_secrets(transaction, sealing, draft.settings.signature, edit.secret);
    if (rejection) co_return base::Failure{*rejection};
  }
  if (is_same(endpoint, draft, sealing)) co_return std::move(found);
  const EndpointKey key{endpoint.id, ref.tenant};
  pg::Batch batch = changes(endpoint, draft, sealing);
  EndpointChange change{caller, key, "endpoint.update", &context.keys, &endpoint};
  co_return co_await finish(transaction, std::move(batch), std::move(change));
}

namespace {

// Stopping what is stopped already may give another reason, or take the stop over: from postrider, so that no
// successful test ends it, or from the customer, so that only an operator does.
bool says_more(const Endpoint& endpoint, const Caller& caller, const StatusChange& wanted) {
  if (wanted.status == EndpointStatus::active) return false;
  return endpoint.status_by != caller.actor || (wanted.reason && wanted.reason != endpoint.status_reason);
}

std::optional<Rejection> reject_customer(const Endpoint& endpoint, const Caller& caller) {
  const bool is_operators = endpoint.is_stopped() && endpoint.status_by == model::Actor::operator_;
  if (!is_operators || !caller.is_customer()) return std::nullopt;
  const std::string how(model::label(endpoint.status));
  return Rejection{RejectionKind::stopped_by_operator,
                   "An operator " + how + " this endpoint; only an operator can resume, stop or delete it."};
}

}  // namespace

Task<EndpointResult> change_status(pg::Link& link, const Caller& caller, EndpointRef ref,
                                   StatusChange wanted) {
  pg::Transaction transaction = co_await link.begin();
  EndpointResult found = co_await lock(transaction, caller, ref);
  if (!found) co_return std::move(found);
  if (wanted.only_revision && *wanted.only_revision != found->revision) co_return std::move(found);
  if (const auto rejection = reject_customer(*found, caller)) co_return base::Failure{*rejection};
  const bool is_same = found->status == wanted.status;
  if (is_same && !says_more(*found, caller, wanted)) co_return std::move(found);
  const EndpointStatus before = found->status;
  if (before == EndpointStatus::disabled && wanted.status == EndpointStatus::paused)
    co_return base::Failure{Rejection{RejectionKind::endpoint_disabled}};

  if (is_same && !wanted.reason) wanted.reason = found->status_reason;
  const EndpointKey key{found->id, ref.tenant};
  const bool forgets_failures = before == EndpointStatus::disabled && wanted.status == EndpointStatus::active;
  pg::Batch batch;
  batch.add(sql::set_endpoint_status{.status = model::label(wanted.status),
                                     .actor = model::label(caller.actor),
                                     .reason = wanted.reason,
                                     .is_reset = forgets_failures,
                                     .id = key.id.uuid});
  if (before == EndpointStatus::paused && !is_same)
    batch.add(sql::close_endpoint_pause{.tenant = key.tenant, .endpoint = key.id.uuid});
  if (wanted.status == EndpointStatus::paused && !is_same)
    batch.add(sql::open_endpoint_pause{.tenant = key.tenant, .endpoint = key.id.uuid});
  EndpointChange change{caller, key, action_of(wanted.status), nullptr, &*found, std::move(wanted.reason)};
  co_return co_await finish(transaction, std::move(batch), std::move(change));
}

Task<EndpointResult> delete_endpoint(pg::Link& link, const Caller& caller, EndpointRef ref) {
  pg::Transaction transaction = co_await link.begin();
  EndpointResult found = co_await lock(transaction, caller, ref);
  if (!found) co_return std::move(found);
  if (const auto rejection = reject_customer(*found, caller)) co_return base::Failure{*rejection};
  const EndpointKey key{found->id, ref.tenant};
  pg::Batch batch;
  batch.add(sql::delete_secrets_and_subscriptions{.endpoint = key.id.uuid});
  batch.add(sql::close_endpoint_pause{.tenant = key.tenant, .endpoint = key.id.uuid});
  batch.add(sql::delete_endpoint{.actor = model::label(caller.actor), .id = key.id.uuid});
  batch.add(sql::add_to_counts{
      .endpoints = -1, .strict_endpoints = -strict_count(found->settings), .tenant = key.tenant});
  registry::add_audit(batch, caller,
                      {.action = "endpoint.delete",
                       .tenant = ref.tenant,
                       .object = found->public_id,
                       .before = snapshot(*found, nullptr)});
  add_note(batch, ChangeKind::endpoint, key.tenant, key.id);
  co_await transaction.run(std::move(batch));
  co_await transaction.commit();
  co_return std::move(found);
}

Task<base::Result<CanceledPending, Rejection>> cancel_pending(pg::Link& link, const Context& context,
                                                              const Caller& caller, EndpointRef ref) {
  pg::Transaction transaction = co_await link.begin();
  EndpointResult found = co_await lock(transaction, caller, ref);
  if (!found) co_return base::Failure{found.error()};
  const EndpointKey key{found->id, ref.tenant};
  pg::Batch batch;
  const auto canceled_before = batch.add(sql::cancel_pending{.now = context.ids.now(), .id = key.id.uuid});
  registry::add_audit(
      batch, caller, {.action = "endpoint.cancel_pending", .tenant = ref.tenant, .object = found->public_id});
  add_note(batch, ChangeKind::endpoint, key.tenant, key.id);
  pg::Results results = co_await transaction.run(std::move(batch));
  co_await transaction.commit();
  CanceledPending canceled{std::move(*found), *results.take(canceled_before).front().cancel_before};
  co_return canceled;
}

}  // namespace postrider::registry
