#include "postrider/delivery/engine_options.hpp"

#include <algorithm>
#include <chrono>

namespace postrider::delivery {

pg::LinkOptions link_options(const std::string& url, const char* application_name) {
  pg::LinkOptions options;
  options.connect = pg::ConnectOptions::engine(url);
  options.connect.application_name = application_name;
  return options;
}

pg::LinkOptions pooled(pg::LinkOptions options, const config::Config& config) {
  options.connect.is_session_ours = config.direct_database_url.empty();
  options.connect.keeps_statements = options.connect.is_session_ours || config.pooler_keeps_statements;
  return options;
}

pg::LinkOptions eager(pg::LinkOptions options, std::chrono::seconds lease) {
  options.pause_max = std::min(options.pause_max, pg::Milliseconds(lease) / 10);
  return options;
}

pg::LinkOptions relaxed(pg::LinkOptions options) {
  options.connect.synchronous_commit = "off";
  return options;
}

http::ClientOptions client_options(const config::Config& config, size_t shards) {
  http::ClientOptions options;
  options.idle_total_max = static_cast<size_t>(config.pooled_connections_max) / shards;
  if (!config.bind_address.empty()) options.bind_address = http::IpAddress::parse(config.bind_address);
  return options;
}

ShardOptions shard_options(const config::Config& config, model::NodeId node, int shards) {
  ShardOptions options;
  options.node_id = node;
  options.buckets_total = config.buckets;
  options.chooser.in_flight_max = std::max(1, config.max_in_flight / shards);
  options.chooser.retry_in_flight_max = std::max(1, options.chooser.in_flight_max / 2);
  options.breaker.failures_to_open = config.breaker_failures;
  options.settle_batch_items_max = static_cast<size_t>(config.settle_batch_items_max);
  options.memory.lane_rows_max = static_cast<size_t>(config.lane_rows_max);
  options.memory.lane_bytes_max = static_cast<size_t>(config.lane_bytes_max);
  options.memory.body_bytes_max = static_cast<size_t>(config.buffer_bytes_max) / static_cast<size_t>(shards);
  options.sender.response_bytes_max = static_cast<size_t>(config.response_bytes_max);
  options.sender.user_agent = config.user_agent;
  return options;
}

}  // namespace postrider::delivery
