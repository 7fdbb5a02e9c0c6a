// What goes into and comes out of the statements of publish.sql, keys.sql and recover.sql. Internal to
// publish/.
#pragma once

#include <string_view>
#include <vector>

#include "postrider/pg/params.hpp"
#include "postrider/pg/rows.hpp"
#include "postrider/publish/commit.hpp"

namespace postrider::publish {

pg::Params publish_params(const Drafts& drafts, const CommitSettings& settings);
// Appends an answer for each draft, and its deliveries; remembers the routes.
void read_published(const pg::Rows& rows, const Drafts& drafts, const CommitSettings& settings,
                    KnownRoutes& routes, Commit& commit);

// A draft and where it goes.
struct RoutedDraft {
  Draft* draft;
  const Route* route;
};
using RoutedDrafts = std::vector<RoutedDraft>;

// The queue rows, in the order in which they are written.
std::vector<model::CommittedDelivery> routed_deliveries(const RoutedDrafts& known, base::Timestamp now);
pg::Params publish_known_params(const RoutedDrafts& known,
                                const std::vector<model::CommittedDelivery>& deliveries,
                                const CommitSettings& settings);
// Appends an answer for each draft, and its deliveries; or, when they were not written, puts all aside.
void read_known(const pg::Rows& rows, const RoutedDrafts& known,
                std::vector<model::CommittedDelivery> deliveries, KnownRoutes& routes, Commit& commit);

// What a publisher is told about the fate of an event that was not written.
PublishAnswer refusal(std::string_view fate);
pg::Error unreadable_answer();

pg::Params recall_params(const Drafts& drafts);

// One key of one draft, as event_key keeps it.
struct KeyRow {
  std::string_view tenant_id, kind, key;
  Draft* draft = nullptr;
  bool is_taken = false;
};
using KeyRows = std::vector<KeyRow>;

// Every key of the drafts, in the order that event_key is locked in.
KeyRows key_rows(const Drafts& drafts);
pg::Params take_keys_params(const KeyRows& keys);
pg::Params read_keys_params(const KeyRows& keys);
pg::Params release_keys_params(const KeyRows& keys);
pg::Params keep_answers_params(const KeyRows& keys, const std::vector<std::string_view>& answers);

}  // namespace postrider::publish
