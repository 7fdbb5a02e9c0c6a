#include "postrider/registry/endpoints.hpp"

#include <algorithm>
#include <utility>

#include "postrider/model/event_type.hpp"
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

std::vector<base::Uuid> one(EndpointId id) {
  return {id.uuid};
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

// A change of one endpoint, as the audit log wants it.
struct EndpointChange {
  const Caller& caller;
  EndpointKey key;
  std::string_view action;
  const crypto::MasterKeys* keys = nullptr;  // to show the names of custom headers
  const Endpoint* before = nullptr;
  std::optional<std::string> reason = {};
};

void add_audit(pg::Batch& batch, EndpointChange change, const Endpoint& after) {
  AuditEntry entry{.action = change.action, .tenant = change.key.tenant, .object = after.outside_id};
  if (change.before) entry.before = snapshot(*change.before, change.keys);
  entry.after = snapshot(after, change.keys);
  entry.reason = std::move(change.reason);
  registry::add_audit(batch, change.caller, std::move(entry));
}

// Makes the change, writes it down with the endpoint as it then is, and commits.
Task<EndpointResult> finish(pg::Transaction& transaction, pg::Batch batch, EndpointChange change) {
  const size_t loaded = batch.size();
  const EndpointKey key = change.key;
  batch.with(sql::load_endpoints, one(key.id), pending_counted_max);
  const std::vector<pg::Rows> answers = co_await transaction.run(std::move(batch));
  Endpoint endpoint = std::move(read_endpoints(answers[loaded], pending_counted_max).front());
  pg::Batch last;
  add_audit(last, std::move(change), endpoint);
  add_note(last, ChangeKind::endpoint, key.tenant, key.id);
  const std::vector<pg::Rows> noted = co_await transaction.run(std::move(last));
  co_await transaction.commit();
  co_return endpoint;
}

// Locks tenant and endpoint, in this order, and reads the endpoint as it is then.
Task<EndpointResult> lock(pg::Transaction& transaction, const Caller& caller, const EndpointRef& ref) {
  pg::Batch batch;
  batch.with(sql::lock_tenant, ref.tenant).with(sql::lock_endpoint, ref.tenant, ref.endpoint);
  const std::vector<pg::Rows> found = co_await transaction.run(std::move(batch));
  if (found[0].empty()) co_return base::Failure{Refusal{RefusalKind::unknown_tenant}};
  if (found[1].empty()) co_return base::Failure{Refusal{RefusalKind::unknown_endpoint}};
  pg::Batch load;
  load.with(sql::load_endpoints, one(EndpointId{found[1].get<base::Uuid>(0, 0)}), pending_counted_max);
  const std::vector<pg::Rows> loaded = co_await transaction.run(std::move(load));
  Endpoint endpoint = std::move(read_endpoints(loaded[0], pending_counted_max).front());
  if (!caller.if_match.accepts(endpoint.revision))
    co_return base::Failure{Refusal{RefusalKind::changed_meanwhile}};
  co_return endpoint;
}

// The tenant is locked and has room for one more; the own id, if any, is free from here on.
Task<std::optional<Refusal>> make_room(pg::Transaction& transaction, const Context& context,
                                       const NewEndpoint& wanted) {
  const std::string own_id = wanted.own_id.value_or("");
  pg::Batch batch;
  batch.with(sql::lock_tenant, wanted.tenant)
      .with(sql::free_outside_id, wanted.tenant, own_id)
      .with(sql::find_endpoint_id, wanted.tenant, own_id);
  const std::vector<pg::Rows> found = co_await transaction.run(std::move(batch));
  if (found[0].empty()) co_return Refusal{RefusalKind::unknown_tenant};
  if (!found[2].empty()) co_return Refusal{RefusalKind::endpoint_exists};
  const int limit = found[0].get<std::optional<int32_t>>(0, 2).value_or(context.endpoints_max);
  if (found[0].get<int32_t>(0, 1) >= limit) {
    Refusal refusal{RefusalKind::too_many_endpoints,
                    "The tenant has its " + std::to_string(limit) + " endpoints; more are not allowed."};
    co_return refusal;
  }
  co_return std::nullopt;
}

Task<EndpointId> insert(pg::Transaction& transaction, const Context& context, const NewEndpoint& wanted) {
  // An id whose tail another endpoint of the tenant has is given up for the next one: one in 2^48.
  for (int tries = 0; tries < 3; ++tries) {
    const EndpointId id{context.ids.next()};
    const Sealing sealing{context.keys, id};
    const std::string sealed = seal_headers(sealing, wanted.draft.headers.value_or(CustomHeaders()));
    pg::Params params(id.uuid, wanted.own_id.value_or(id.outside()), wanted.tenant,
                      model::bucket_of(id, context.buckets), model::delivery_tail_of(id),
                      bytes_or_null(sealed));
    add_settings(params, wanted.draft.settings);
    pg::Batch batch(sql::insert_endpoint, std::move(params));
    const std::vector<pg::Rows> inserted = co_await transaction.run(std::move(batch));
    if (!inserted[0].empty()) co_return id;
  }
  throw std::runtime_error("three endpoint ids in a row had a tail that was taken");
}

// Whether the active secrets serve the scheme, and `secret`, if given, is the current one.
Task<std::optional<Refusal>> check_secrets(pg::Transaction& transaction, const Sealing& sealing,
                                           crypto::SignatureScheme scheme,
                                           std::optional<std::string> secret) {
  pg::Batch batch;
  batch.with(sql::load_secrets, sealing.endpoint.uuid);
  const std::vector<pg::Rows> answers = co_await transaction.run(std::move(batch));
  for (size_t row = 0; row < answers[0].size(); ++row) {
    const auto text = sealing.open_secret(answers[0].get<pg::Bytes>(row, 1).view);
    if (row == 0 && secret && (!text || *text != *secret)) co_return Refusal{RefusalKind::secret_differs};
    if (!text) continue;                // what cannot be read cannot be judged; the lane is held anyway
    if (is_reference(*text)) continue;  // judged by whoever signs with it
    const auto key = crypto::SigningKey::from_secret(scheme, *text);
    if (!key) co_return Refusal{RefusalKind::secret_unfit, key.error()};
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
  pg::Params params(key.id.uuid, bytes_or_null(sealed), is_other_url);
  add_settings(params, settings);
  pg::Batch batch(sql::update_endpoint, std::move(params));
  const int32_t more_strict = strict_count(settings) - strict_count(endpoint.settings);
  if (more_strict != 0) batch.with(sql::add_to_counts, key.tenant, int32_t{0}, more_strict);
  if (more_strict > 0) batch.with(sql::ensure_position, key.id.uuid);
  if (draft.patterns) add_patterns(batch, key, *draft.patterns);
  return batch;
}

}  // namespace

Task<base::Result<CreatedEndpoint, Refusal>> create_endpoint(pg::Link& link, const Context& context,
                                                             const Caller& caller, NewEndpoint wanted) {
  const EndpointSettings& settings = wanted.draft.settings;
  if (wanted.own_id && wanted.own_id->starts_with(model::EndpointTag::prefix))
    co_return base::Failure{Refusal{RefusalKind::reserved_id}};
  std::string secret = wanted.secret ? *wanted.secret : crypto::generate_secret(settings.signature);
  if (const auto why = why_not_secret(context.references, settings.signature, secret))
    co_return base::Failure{Refusal{RefusalKind::secret_unfit, *why}};

  pg::Transaction transaction = co_await link.begin();
  const std::optional<Refusal> no_room = co_await make_room(transaction, context, wanted);
  if (no_room) co_return base::Failure{*no_room};
  const EndpointId id = co_await insert(transaction, context, wanted);

  const EndpointKey key{id, wanted.tenant};
  const Sealing sealing{context.keys, id};
  const std::string sealed_secret = sealing.seal_secret(secret);
  pg::Batch batch;
  batch.with(sql::insert_secret, context.ids.next(), id.uuid, pg::Bytes{sealed_secret})
      .with(sql::add_to_counts, wanted.tenant, int32_t{1}, strict_count(settings));
  if (strict_count(settings) > 0) batch.with(sql::ensure_position, id.uuid);
  if (wanted.draft.patterns) add_patterns(batch, key, *wanted.draft.patterns);
  EndpointChange change{caller, key, "endpoint.create", &context.keys};
  EndpointResult endpoint = co_await finish(transaction, std::move(batch), std::move(change));
  CreatedEndpoint created{std::move(*endpoint), std::move(secret)};
  co_return created;
}

Task<EndpointResult> find_endpoint(pg::Link& link, EndpointRef ref) {
  pg::Params wanted(ref.tenant, ref.endpoint);
  const pg::Rows found = co_await link.run_one(sql::find_endpoint_id, std::move(wanted));
  if (found.empty()) co_return base::Failure{Refusal{RefusalKind::unknown_endpoint}};
  pg::Params id(one(EndpointId{found.get<base::Uuid>(0, 0)}), pending_counted_max);
  const pg::Rows rows = co_await link.run_one(sql::load_endpoints, std::move(id));
  co_return std::move(read_endpoints(rows, pending_counted_max).front());
}

Task<base::Result<std::vector<Endpoint>, Refusal>> list_endpoints(pg::Link& link, EndpointFilter filter) {
  std::optional<std::string_view> status;
  if (filter.status) status = model::label(*filter.status);
  pg::Params listing(filter.tenant, filter.after.uuid, filter.limit, status, filter.url);
  if (filter.event_type)
    listing.add(model::patterns_matching(*filter.event_type));
  else
    listing.null<std::vector<std::string>>();
  pg::Batch batch;
  batch.with(sql::is_deleted_tenant, filter.tenant).add(sql::list_endpoint_ids, std::move(listing));
  const std::vector<pg::Rows> found = co_await link.run(std::move(batch));
  if (found[0].empty() || found[0].get<bool>(0, 0))
    co_return base::Failure{Refusal{RefusalKind::unknown_tenant}};
  std::vector<base::Uuid> ids;
  for (size_t row = 0; row < found[1].size(); ++row) ids.push_back(found[1].get<base::Uuid>(row, 0));
  pg::Params wanted(ids, pending_counted_in_list_max);
  const pg::Rows rows = co_await link.run_one(sql::load_endpoints, std::move(wanted));
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
  if (!edit.apply(draft)) co_return base::Failure{Refusal{RefusalKind::abandoned}};

  const Sealing sealing{context.keys, endpoint.id};
  if (edit.secret || draft.settings.signature != endpoint.settings.signature) {
    const auto refusal = co_await check_secrets(transaction, sealing, draft.settings.signature, edit.secret);
    if (refusal) co_return base::Failure{*refusal};
  }
  if (is_same(endpoint, draft, sealing)) co_return std::move(found);
  const EndpointKey key{endpoint.id, ref.tenant};
  pg::Batch batch = changes(endpoint, draft, sealing);
  EndpointChange change{caller, key, "endpoint.change", &context.keys, &endpoint};
  co_return co_await finish(transaction, std::move(batch), std::move(change));
}

namespace {

// Whoever stops what is stopped already may have a better reason, or make a stop by postrider itself one by a
// person, which no successful test ends.
bool says_more(const Endpoint& endpoint, const StatusChange& wanted) {
  if (wanted.status == EndpointStatus::active) return false;
  return endpoint.is_status_automatic || (wanted.reason && wanted.reason != endpoint.status_reason);
}

}  // namespace

Task<EndpointResult> change_status(pg::Link& link, const Caller& caller, EndpointRef ref,
                                   StatusChange wanted) {
  pg::Transaction transaction = co_await link.begin();
  EndpointResult found = co_await lock(transaction, caller, ref);
  if (!found) co_return std::move(found);
  const bool is_same = found->status == wanted.status;
  if (is_same && !says_more(*found, wanted)) co_return std::move(found);
  if (wanted.only_revision && *wanted.only_revision != found->revision) co_return std::move(found);
  const EndpointStatus before = found->status;
  if (before == EndpointStatus::disabled && wanted.status == EndpointStatus::paused)
    co_return base::Failure{Refusal{RefusalKind::endpoint_disabled}};

  if (is_same && !wanted.reason) wanted.reason = found->status_reason;
  const EndpointKey key{found->id, ref.tenant};
  const bool forgets_failures = before == EndpointStatus::disabled && wanted.status == EndpointStatus::active;
  pg::Batch batch;
  batch.with(sql::set_endpoint_status, key.id.uuid, model::label(wanted.status), wanted.reason,
             forgets_failures);
  if (before == EndpointStatus::paused && !is_same)
    batch.with(sql::close_endpoint_pause, key.tenant, key.id.uuid);
  if (wanted.status == EndpointStatus::paused && !is_same)
    batch.with(sql::open_endpoint_pause, key.tenant, key.id.uuid);
  EndpointChange change{caller, key, action_of(wanted.status), nullptr, &*found, std::move(wanted.reason)};
  co_return co_await finish(transaction, std::move(batch), std::move(change));
}

Task<EndpointResult> delete_endpoint(pg::Link& link, const Caller& caller, EndpointRef ref) {
  pg::Transaction transaction = co_await link.begin();
  EndpointResult found = co_await lock(transaction, caller, ref);
  if (!found) co_return std::move(found);
  const EndpointKey key{found->id, ref.tenant};
  pg::Batch batch;
  batch.with(sql::delete_secrets_and_subscriptions, key.id.uuid)
      .with(sql::close_endpoint_pause, key.tenant, key.id.uuid)
      .with(sql::delete_endpoint, key.id.uuid)
      .with(sql::add_to_counts, key.tenant, int32_t{-1}, -strict_count(found->settings));
  registry::add_audit(batch, caller,
                      {.action = "endpoint.delete",
                       .tenant = ref.tenant,
                       .object = found->outside_id,
                       .before = snapshot(*found, nullptr)});
  add_note(batch, ChangeKind::endpoint, key.tenant, key.id);
  const std::vector<pg::Rows> done = co_await transaction.run(std::move(batch));
  co_await transaction.commit();
  co_return std::move(found);
}

Task<base::Result<CanceledPending, Refusal>> cancel_pending(pg::Link& link, const Context& context,
                                                            const Caller& caller, EndpointRef ref) {
  pg::Transaction transaction = co_await link.begin();
  EndpointResult found = co_await lock(transaction, caller, ref);
  if (!found) co_return base::Failure{found.error()};
  const EndpointKey key{found->id, ref.tenant};
  pg::Batch batch;
  batch.with(sql::cancel_pending, key.id.uuid, context.ids.now());
  registry::add_audit(
      batch, caller,
      {.action = "endpoint.cancel_pending", .tenant = ref.tenant, .object = found->outside_id});
  add_note(batch, ChangeKind::endpoint, key.tenant, key.id);
  const std::vector<pg::Rows> done = co_await transaction.run(std::move(batch));
  co_await transaction.commit();
  CanceledPending canceled{std::move(*found), done[0].get<base::Timestamp>(0, 0)};
  co_return canceled;
}

}  // namespace postrider::registry
