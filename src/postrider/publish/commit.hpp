// One attempt to commit a batch of drafts. Internal to publish/; Publisher decides what a failure means.
#pragma once

#include <vector>

#include "postrider/publish/draft.hpp"
#include "postrider/publish/known_routes.hpp"

namespace postrider::publish {

struct CommitSettings {
  model::NodeId node_id;  // nil: the deliveries will not be handed over in memory
  base::Timestamp now{};
  int data_bytes_max = 0;
  int wide_endpoints = 0;
  base::SteadyTime deadline{};  // for the connection to come up
};

struct Commit {
  struct Answer {
    Draft* draft;
    PublishAnswer answer;
  };
  std::vector<Answer> answers;  // in any order
  // Not written and not answered: their routes have changed meanwhile, or a key of theirs had to be freed.
  Drafts stale;
  std::vector<model::CommittedDelivery> deliveries;
  bool has_wide = false;
};

// Drafts without keys: one round trip. With keys: a transaction that takes the keys first and answers those
// who come too late with what the first one got. All drafts but the stale ones are committed or, when it
// throws pg::Error, none (or, Kind::unknown, nobody knows).
runtime::Task<Commit> commit_drafts(pg::Link& link, KnownRoutes& routes, Drafts drafts,
                                    CommitSettings settings);

// The same after an attempt whose outcome is unknown: events that are there already were committed by it.
// Their deliveries may be under way, so they are left alone, and every owner is made to look at the table.
runtime::Task<Commit> commit_again(pg::Link& link, KnownRoutes& routes, Drafts drafts,
                                   CommitSettings settings);

// The same within a transaction of the caller's, who then commits it.
runtime::Task<Commit> write_drafts(pg::Transaction& transaction, KnownRoutes& routes, Drafts drafts,
                                   CommitSettings settings);

// The error of a row that found no partition, and what helps: those of the drafts' days are made. Logs what
// fails; the next try finds it made by somebody else, or makes it.
bool is_missing_partition(const pg::Error& error);
runtime::Task<void> make_partitions(pg::Link& link, const Drafts& drafts);

bool is_unknown_tenant(const PublishAnswer& answer);
// Makes the drafts' tenants, where they are not there. Throws pg::Error.
runtime::Task<void> create_tenants(pg::Link& link, const Drafts& drafts);

// All delivery ids of the drafts lie in it.
model::DeliveryRange delivery_range_of(const Drafts& drafts);

}  // namespace postrider::publish
