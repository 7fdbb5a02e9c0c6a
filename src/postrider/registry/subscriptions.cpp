#include "postrider/registry/subscriptions.hpp"

#include <algorithm>
#include <utility>

#include "postrider/registry/audit.hpp"
#include "postrider/registry/control_log.hpp"
#include "postrider/registry/subscriptions.sql.hpp"

namespace postrider::registry {

namespace {

using runtime::Task;

// The form of versions excludes commas, so that an array of lists can travel as an array of texts.
std::optional<std::string> joined(const std::optional<std::vector<std::string>>& versions) {
  if (!versions) return std::nullopt;
  std::string text;
  for (const auto& version : *versions) {
    if (!text.empty()) text += ',';
    text += version;
  }
  return text;
}

Subscriptions read_subscriptions(const pg::RowsOf<sql::load_subscriptions>& rows) {
  Subscriptions subscriptions;
  subscriptions.reserve(rows.size());
  for (const auto& row : rows) {
    Subscription& subscription = subscriptions.emplace_back();
    subscription.pattern = row.pattern;
    subscription.enabled = row.enabled;
    if (row.versions) subscription.versions.emplace(row.versions->begin(), row.versions->end());
  }
  return subscriptions;
}

Snapshot snapshot(const Subscriptions& subscriptions) {
  std::vector<std::string> items;
  for (const auto& subscription : subscriptions) {
    base::JsonObject json;
    json.add("pattern", subscription.pattern)
        .add("enabled", subscription.enabled)
        .add("versions", subscription.versions);
    items.push_back(json.text());
  }
  Snapshot fields;
  fields.raw_or_null("subscriptions", base::json_array(items));
  return fields;
}

// A locked endpoint, and its subscriptions.
struct LockedEndpoint {
  EndpointKey key;
  std::string public_id;
  Subscriptions subscriptions;
};

Task<base::Result<LockedEndpoint, Rejection>> lock(pg::Transaction& transaction, const Caller& caller,
                                                   const EndpointRef& ref) {
  const auto found =
      co_await transaction.run(sql::lock_endpoint{.tenant = ref.tenant, .public_id = ref.endpoint});
  if (found.empty()) co_return base::Failure{Rejection{RejectionKind::unknown_endpoint}};
  if (!caller.if_match.accepts(found.front().revision))
    co_return base::Failure{Rejection{RejectionKind::changed_meanwhile}};
  LockedEndpoint locked{{model::EndpointId{found.front().id}, ref.tenant}, ref.endpoint, {}};
  const auto loaded = co_await transaction.run(sql::load_subscriptions{.endpoint = locked.key.id.uuid});
  locked.subscriptions = read_subscriptions(loaded);
  co_return locked;
}

// Makes the change, writes it down with the subscriptions as they then are, and commits.
Task<SubscriptionsResult> finish(pg::Transaction& transaction, pg::Batch batch, const Caller& caller,
                                 const LockedEndpoint& endpoint) {
  const auto loaded = batch.add(sql::load_subscriptions{.endpoint = endpoint.key.id.uuid});
  batch.add(sql::bump_revision{.id = endpoint.key.id.uuid});
  pg::Results results = co_await transaction.run(std::move(batch));
  Subscriptions subscriptions = read_subscriptions(results.take(loaded));
  pg::Batch last;
  add_audit(last, caller,
            {.action = "subscriptions.update",
             .tenant = endpoint.key.tenant,
             .object = endpoint.public_id,
             .before = snapshot(endpoint.subscriptions),
             .after = snapshot(subscriptions)});
  add_note(last, ChangeKind::subscriptions, endpoint.key.tenant, endpoint.key.id);
  co_await transaction.run(std::move(last));
  co_await transaction.commit();
  co_return subscriptions;
}

}  // namespace

void add_subscriptions(pg::Batch& batch, const EndpointKey& endpoint, const Subscriptions& subscriptions) {
  std::vector<std::string_view> patterns;
  std::vector<bool> enabled;
  std::vector<std::optional<std::string>> versions;
  for (const auto& subscription : subscriptions) {
    patterns.push_back(subscription.pattern);
    enabled.push_back(subscription.enabled);
    versions.push_back(joined(subscription.versions));
  }
  batch.add(sql::delete_other_subscriptions{.endpoint = endpoint.id.uuid, .patterns = patterns});
  batch.add(sql::upsert_subscriptions{.tenant = endpoint.tenant,
                                      .endpoint = endpoint.id.uuid,
                                      .patterns = patterns,
                                      .enabled = enabled,
                                      .versions = versions});
}

void add_patterns(pg::Batch& batch, const EndpointKey& endpoint, const std::vector<std::string>& patterns) {
  const std::vector<std::string_view> views(patterns.begin(), patterns.end());
  batch.add(sql::delete_other_subscriptions{.endpoint = endpoint.id.uuid, .patterns = views});
  batch.add(sql::insert_missing_patterns{
      .tenant = endpoint.tenant, .endpoint = endpoint.id.uuid, .patterns = views});
}

Task<SubscriptionsResult> find_subscriptions(pg::Link& link, EndpointRef ref) {
  const auto found =
      co_await link.run(sql::find_endpoint_id{.tenant = ref.tenant, .public_id = ref.endpoint});
  if (found.empty()) co_return base::Failure{Rejection{RejectionKind::unknown_endpoint}};
  const auto rows = co_await link.run(sql::load_subscriptions{.endpoint = found.front().id});
  co_return read_subscriptions(rows);
}

Task<SubscriptionsResult> replace_subscriptions(pg::Link& link, const Caller& caller, EndpointRef ref,
                                                Subscriptions subscriptions) {
  pg::Transaction transaction = co_await link.begin();
  const base::Result<LockedEndpoint, Rejection> endpoint = co_await lock(transaction, caller, ref);
  if (!endpoint) co_return base::Failure{endpoint.error()};
  pg::Batch batch;
  add_subscriptions(batch, endpoint->key, subscriptions);
  co_return co_await finish(transaction, std::move(batch), caller, *endpoint);
}

Task<base::Result<Subscription, Rejection>> change_subscription(pg::Link& link, const Caller& caller,
                                                                EndpointRef ref, std::string pattern,
                                                                SubscriptionEdit edit) {
  pg::Transaction transaction = co_await link.begin();
  const base::Result<LockedEndpoint, Rejection> endpoint = co_await lock(transaction, caller, ref);
  if (!endpoint) co_return base::Failure{endpoint.error()};
  Subscriptions subscriptions = endpoint->subscriptions;
  const auto wanted =
      std::find_if(subscriptions.begin(), subscriptions.end(),
                   [&](const Subscription& subscription) { return subscription.pattern == pattern; });
  if (wanted == subscriptions.end()) co_return base::Failure{Rejection{RejectionKind::unknown_subscription}};
  if (!edit(*wanted)) co_return base::Failure{Rejection{RejectionKind::abandoned}};

  pg::Batch batch;
  batch.add(sql::update_subscription{.enabled = wanted->enabled,
                                     .versions = joined(wanted->versions),
                                     .endpoint = endpoint->key.id.uuid,
                                     .pattern = pattern});
  const SubscriptionsResult changed = co_await finish(transaction, std::move(batch), caller, *endpoint);
  if (!changed) co_return base::Failure{changed.error()};
  co_return std::move(*wanted);
}

}  // namespace postrider::registry
