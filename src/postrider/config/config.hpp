// All settings of a node, typed. How they are spelled, parsed and explained is the table in settings.cpp;
// where they come from is load.hpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "postrider/base/version.hpp"
#include "postrider/config/network.hpp"

namespace postrider::config {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Roles {
  bool api = true;
  bool relay = true;
  bool delivery = true;
  bool inbox = true;
  bool upkeep = true;
  bool operator==(const Roles&) const = default;
};

enum class LogLevel { debug, info, warn, error };
enum class LogFormat { automatic, json, text };  // automatic: text on a terminal, else json

// An outbox in another database: an [[outbox]] table of the file.
struct OutboxConfig {
  std::string name;
  std::string database_url;
  std::optional<milliseconds> poll{};  // otherwise relay_poll
  std::optional<seconds> retain{};     // otherwise retain_outbox
  bool operator==(const OutboxConfig&) const = default;
};

// A source of inbound webhooks: a [[source]] table of the file. The API validates its fields.
struct SourceConfig {
  std::string id;
  std::string document;                       // JSON, as POST /v1/sources takes it, without its secrets
  std::vector<std::string> secrets;           // or references to them
  std::map<std::string, std::string> places;  // JSON pointer → "file postrider.toml:3"
  std::string from;
  bool operator==(const SourceConfig&) const = default;
};

struct Config {
  // Database and identity
  std::string database_url;         // empty: private Postgres in data_dir
  std::string direct_database_url;  // empty: database_url
  bool pooler_keeps_statements = false;
  std::string data_dir;
  Roles roles;
  std::string admin_key;           // empty: made at first start
  std::string master_key;          // as crypto::MasterKeys::parse reads it; empty: see resolve_master_key()
  std::string master_key_command;  // prints the master key
  std::vector<std::string> secret_directories;  // secrets may refer to files below them
  std::string secret_environment_prefix;        // and to variables that begin with it; empty: none
  std::vector<std::string> secret_programs;     // and to what these print
  seconds secret_lifetime{0};
  int buckets = 0;
  int lease_seconds = 0;

  // HTTP
  HostPort listen;
  std::string public_url;  // without a slash at its end; empty until load() fills it from listen
  std::vector<Network> trusted_proxies;
  int connections_max = 0;
  int connections_per_address_max = 0;    // 0: no limit
  std::vector<std::string> cors_origins;  // whose pages may use the API; empty: none
  int64_t api_body_bytes_max = 0;
  int64_t batch_body_bytes_max = 0;
  int64_t request_head_bytes_max = 0;
  int request_fields_max = 0;
  int64_t request_target_bytes_max = 0;
  seconds request_timeout{0};
  seconds idle_timeout{0};

  // Tenants, events and endpoints
  bool create_tenants = false;
  bool allow_unknown_event_types = true;
  int64_t payload_bytes_max = 0;
  int batch_events_max = 0;
  int endpoints_max = 0;  // per tenant
  int keys_per_tenant_max = 0;
  int tokens_per_tenant_max = 0;
  int subscriptions_max = 0;  // per endpoint
  int custom_headers_max = 0;
  int64_t custom_header_bytes_max = 0;
  int default_max_attempts = 0;
  int default_timeout_ms = 0;
  int default_give_up_seconds = 0;
  int default_max_in_flight = 0;
  std::string default_on_rejected = "dead_letter";   // a label of model::OnRejected
  std::vector<milliseconds> default_retry_schedule;  // empty: the schedule of delivery::RetrySchedule
  std::string user_agent = "postrider/" + std::string(base::kVersion);

  // Maximum values for customers
  int customer_max_in_flight = 0;
  int customer_timeout_ms = 0;
  int customer_rate_per_second = 0;  // 0: no maximum
  int customer_replay_rate_per_second = 0;
  int customer_queued_replays_max = 0;
  bool customer_may_erase = false;

  // Where deliveries may go
  bool allow_http = false;
  std::vector<Network> allow_networks;
  std::vector<PortRange> allow_ports;
  std::string extra_ca_file;
  std::string bind_address;

  // Engine
  int shards = 0;         // load() turns 0 into a number that fits the cores
  int api_threads = 0;    // the same
  int max_in_flight = 0;  // per node
  int lane_rows_max = 0;
  int64_t lane_bytes_max = 0;
  int64_t buffer_bytes_max = 0;  // all lanes of a node together
  int publish_queue_items_max = 0;
  int publish_batch_items_max = 0;
  int publish_batch_rows_max = 0;
  int64_t publish_batch_bytes_max = 0;
  int settle_batch_items_max = 0;
  int wide_fanout_endpoints = 0;
  int fanout_chunk_rows = 0;
  int pooled_connections_max = 0;  // idle connections to endpoints, per node
  int64_t response_bytes_max = 0;
  int breaker_failures = 0;
  seconds drain_timeout{0};
  milliseconds relay_poll{0};
  bool relay_notify = true;
  bool private_capture = false;
  std::vector<OutboxConfig> outboxes;  // only in the file
  std::vector<SourceConfig> sources;   // only in the file

  // Retention
  seconds retain_events{0};
  seconds retain_attempts{0};
  seconds retain_outbox{0};
  seconds retain_inbox{0};
  seconds retain_audit{0};
  seconds retain_rollups{0};
  std::string archive_dir;  // empty: dropped days are not archived

  // Endpoint health
  seconds disable_after{0};
  seconds first_notice_after{0};
  int first_notice_failures = 0;
  int degraded_below = 0;  // percent; 0: never
  int degraded_attempts = 0;

  // Notices and mail
  std::string smtp_url;
  std::string mail_from;
  int notices_per_tenant = 0;              // per day
  int confirmation_mails_per_tenant = 0;   // per day
  int confirmation_mails_per_address = 0;  // per day
  LogLevel log_level = LogLevel::info;
  LogFormat log_format = LogFormat::automatic;
  std::vector<std::string> metrics_tenants;  // with metrics of their own
};

}  // namespace postrider::config
