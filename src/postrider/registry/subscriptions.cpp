#include "postrider/registry/subscriptions.hpp"

#include <algorithm>
#include <utility>

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

Task<SubscriptionsResult> finish(pg::Transaction& transaction, pg::Batch batch, const EndpointKey& endpoint) {
  batch.with(sql::bump_revision, endpoint.id.uuid);
  const size_t loaded = batch.size();
  batch.with(sql::load_subscriptions, endpoint.id.uuid);
  add_note(batch, ChangeKind::subscriptions, endpoint.tenant, endpoint.id);
  const std::vector<pg::Rows> answers = co_await transaction.run(std::move(batch));
  co_await transaction.commit();
  co_return read_subscriptions(answers[loaded]);
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

Task<SubscriptionsResult> replace_subscriptions(pg::Link& link, EndpointRef ref,
                                                Subscriptions subscriptions) {
  pg::Transaction transaction = co_await link.begin();
  pg::Batch lock;
  lock.with(sql::lock_endpoint, ref.tenant, ref.endpoint);
  const std::vector<pg::Rows> found = co_await transaction.run(std::move(lock));
  if (found[0].empty()) co_return base::Failure{Refusal{RefusalKind::unknown_endpoint}};
  const EndpointKey endpoint{model::EndpointId{found[0].get<base::Uuid>(0, 0)}, ref.tenant};
  pg::Batch batch;
  add_subscriptions(batch, endpoint, subscriptions);
  co_return co_await finish(transaction, std::move(batch), endpoint);
}

Task<base::Result<Subscription, Refusal>> change_subscription(pg::Link& link, EndpointRef ref,
                                                              std::string pattern, SubscriptionEdit edit) {
  pg::Transaction transaction = co_await link.begin();
  pg::Batch lock;
  lock.with(sql::lock_endpoint, ref.tenant, ref.endpoint);
  const std::vector<pg::Rows> found = co_await transaction.run(std::move(lock));
  if (found[0].empty()) co_return base::Failure{Refusal{RefusalKind::unknown_endpoint}};
  const EndpointKey endpoint{model::EndpointId{found[0].get<base::Uuid>(0, 0)}, ref.tenant};
  pg::Batch load;
  load.with(sql::load_subscriptions, endpoint.id.uuid);
  const std::vector<pg::Rows> loaded = co_await transaction.run(std::move(load));
  Subscriptions subscriptions = read_subscriptions(loaded[0]);
  const auto wanted =
      std::find_if(subscriptions.begin(), subscriptions.end(),
                   [&](const Subscription& subscription) { return subscription.pattern == pattern; });
  if (wanted == subscriptions.end()) co_return base::Failure{Refusal{RefusalKind::unknown_subscription}};
  if (!edit(*wanted)) co_return base::Failure{Refusal{RefusalKind::abandoned}};

  pg::Batch batch;
  batch.with(sql::update_subscription, endpoint.id.uuid, pattern, wanted->enabled, joined(wanted->versions));
  const SubscriptionsResult changed = co_await finish(transaction, std::move(batch), endpoint);
  CHECK(changed.ok());
  co_return std::move(*wanted);
}

}  // namespace postrider::registry
