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

Subscriptions read_subscriptions(const pg::Rows& rows) {
  Subscriptions subscriptions;
  subscriptions.reserve(rows.size());
  for (size_t row = 0; row < rows.size(); ++row) {
    Subscription subscription;
    subscription.pattern = rows.get<std::string>(row, 0);
    subscription.enabled = rows.get<bool>(row, 1);
    subscription.versions = rows.get<std::optional<std::vector<std::string>>>(row, 2);
    subscriptions.push_back(std::move(subscription));
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

// An endpoint that is locked, and what it subscribes to.
struct LockedEndpoint {
  EndpointKey key;
  std::string outside_id;
  Subscriptions subscriptions;
};

Task<base::Result<LockedEndpoint, Refusal>> lock(pg::Transaction& transaction, const Caller& caller,
                                                 const EndpointRef& ref) {
  pg::Batch lock;
  lock.with(sql::lock_endpoint, ref.tenant, ref.endpoint);
  const std::vector<pg::Rows> found = co_await transaction.run(std::move(lock));
  if (found[0].empty()) co_return base::Failure{Refusal{RefusalKind::unknown_endpoint}};
  if (!caller.if_match.accepts(found[0].get<int32_t>(0, 1)))
    co_return base::Failure{Refusal{RefusalKind::changed_meanwhile}};
  LockedEndpoint locked{{model::EndpointId{found[0].get<base::Uuid>(0, 0)}, ref.tenant}, ref.endpoint, {}};
  pg::Batch load;
  load.with(sql::load_subscriptions, locked.key.id.uuid);
  const std::vector<pg::Rows> loaded = co_await transaction.run(std::move(load));
  locked.subscriptions = read_subscriptions(loaded[0]);
  co_return locked;
}

// Makes the change, writes it down with the subscriptions as they then are, and commits.
Task<SubscriptionsResult> finish(pg::Transaction& transaction, pg::Batch batch, const Caller& caller,
                                 const LockedEndpoint& endpoint) {
  const size_t loaded = batch.size();
  batch.with(sql::load_subscriptions, endpoint.key.id.uuid).with(sql::bump_revision, endpoint.key.id.uuid);
  const std::vector<pg::Rows> answers = co_await transaction.run(std::move(batch));
  Subscriptions subscriptions = read_subscriptions(answers[loaded]);
  pg::Batch last;
  add_audit(last, caller,
            {.action = "subscriptions.change",
             .tenant = endpoint.key.tenant,
             .object = endpoint.outside_id,
             .before = snapshot(endpoint.subscriptions),
             .after = snapshot(subscriptions)});
  add_note(last, ChangeKind::subscriptions, endpoint.key.tenant, endpoint.key.id);
  const std::vector<pg::Rows> noted = co_await transaction.run(std::move(last));
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
  batch.with(sql::delete_other_subscriptions, endpoint.id.uuid, patterns)
      .with(sql::upsert_subscriptions, endpoint.tenant, endpoint.id.uuid, patterns, enabled, versions);
}

void add_patterns(pg::Batch& batch, const EndpointKey& endpoint, const std::vector<std::string>& patterns) {
  const std::vector<std::string_view> views(patterns.begin(), patterns.end());
  batch.with(sql::delete_other_subscriptions, endpoint.id.uuid, views)
      .with(sql::insert_missing_patterns, endpoint.tenant, endpoint.id.uuid, views);
}

Task<SubscriptionsResult> find_subscriptions(pg::Link& link, EndpointRef ref) {
  pg::Params wanted(ref.tenant, ref.endpoint);
  const pg::Rows found = co_await link.run_one(sql::find_endpoint_id, std::move(wanted));
  if (found.empty()) co_return base::Failure{Refusal{RefusalKind::unknown_endpoint}};
  pg::Params endpoint(found.get<base::Uuid>(0, 0));
  const pg::Rows rows = co_await link.run_one(sql::load_subscriptions, std::move(endpoint));
  co_return read_subscriptions(rows);
}

Task<SubscriptionsResult> replace_subscriptions(pg::Link& link, const Caller& caller, EndpointRef ref,
                                                Subscriptions subscriptions) {
  pg::Transaction transaction = co_await link.begin();
  const base::Result<LockedEndpoint, Refusal> endpoint = co_await lock(transaction, caller, ref);
  if (!endpoint) co_return base::Failure{endpoint.error()};
  pg::Batch batch;
  add_subscriptions(batch, endpoint->key, subscriptions);
  co_return co_await finish(transaction, std::move(batch), caller, *endpoint);
}

Task<base::Result<Subscription, Refusal>> change_subscription(pg::Link& link, const Caller& caller,
                                                              EndpointRef ref, std::string pattern,
                                                              SubscriptionEdit edit) {
  pg::Transaction transaction = co_await link.begin();
  const base::Result<LockedEndpoint, Refusal> endpoint = co_await lock(transaction, caller, ref);
  if (!endpoint) co_return base::Failure{endpoint.error()};
  Subscriptions subscriptions = endpoint->subscriptions;
  const auto wanted =
      std::find_if(subscriptions.begin(), subscriptions.end(),
                   [&](const Subscription& subscription) { return subscription.pattern == pattern; });
  if (wanted == subscriptions.end()) co_return base::Failure{Refusal{RefusalKind::unknown_subscription}};
  if (!edit(*wanted)) co_return base::Failure{Refusal{RefusalKind::abandoned}};

  pg::Batch batch;
  batch.with(sql::update_subscription, endpoint->key.id.uuid, pattern, wanted->enabled,
             joined(wanted->versions));
  const SubscriptionsResult changed = co_await finish(transaction, std::move(batch), caller, *endpoint);
  CHECK(changed.ok());
  co_return std::move(*wanted);
}

}  // namespace postrider::registry
