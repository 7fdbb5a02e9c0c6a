// Derives the options of a node's parts from its configuration.
#pragma once

#include <string>

#include "postrider/config/config.hpp"
#include "postrider/delivery/shard.hpp"
#include "postrider/http/client/client.hpp"
#include "postrider/pg/link.hpp"

namespace postrider::delivery {

pg::LinkOptions link_options(const std::string& url, const char* application_name);
// DATABASE_URL is a pooler's when there is a direct one beside it: settings then belong to the role, and
// statements have no names unless the configuration says that the pooler keeps them.
pg::LinkOptions pooled(pg::LinkOptions options, const config::Config& config);
// Reconnects before the other nodes take over the buckets of this one.
pg::LinkOptions eager(pg::LinkOptions options, std::chrono::seconds lease);
pg::LinkOptions relaxed(pg::LinkOptions options);
http::ClientOptions client_options(const config::Config& config, size_t shards);
ShardOptions shard_options(const config::Config& config, model::NodeId node, int shards);

}  // namespace postrider::delivery
