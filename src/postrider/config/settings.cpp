#include "postrider/config/settings.hpp"

#include <algorithm>
#include <cctype>
#include <limits>

#include "postrider/config/values.hpp"

namespace postrider::config {
namespace {

using Applied = base::Result<bool, std::string>;
using Apply = Applied (*)(Config&, std::string_view);

template <class T, class Member>
Applied store(Parsed<T> parsed, Member& member) {
  if (!parsed.ok()) return base::Failure{parsed.error()};
  member = static_cast<Member>(std::move(*parsed));
  return true;
}

// One kind of value each: the member to write is part of the type, so that a row needs no code of its own.
template <auto member>
Applied text(Config& config, std::string_view value) {
  config.*member = std::string(trimmed(value));
  return true;
}
template <auto member, int64_t min, int64_t max>
Applied integer(Config& config, std::string_view value) {
  return store(parse_integer(value, {.min = min, .max = max}), config.*member);
}
template <auto member>
Applied count(Config& config, std::string_view value) {
  return integer<member, 1, 1'000'000>(config, value);
}
template <auto member>
Applied boolean(Config& config, std::string_view value) {
  return store(parse_boolean(value), config.*member);
}
template <auto member>
Applied size(Config& config, std::string_view value) {
  Parsed<int64_t> parsed = parse_size(value);
  if (parsed.ok() && (*parsed < 1'024 || *parsed > (int64_t{64} << 30)))
    return base::Failure{std::string("must be from 1KiB to 64GiB")};
  return store(std::move(parsed), config.*member);
}
template <auto member, int64_t min_ms, int64_t max_ms>
Applied duration(Config& config, std::string_view value) {
  const Parsed<milliseconds> parsed = parse_duration(value);
  if (!parsed.ok()) return base::Failure{parsed.error()};
  if (parsed->count() < min_ms || parsed->count() > max_ms)
    return base::Failure{"must be from " + std::to_string(min_ms) + "ms to " +
                         std::to_string(max_ms / 1'000) + "s"};
  config.*member = std::chrono::duration_cast<std::remove_reference_t<decltype(config.*member)>>(*parsed);
  return true;
}
template <auto member>
Applied retention(Config& config, std::string_view value) {
  const Parsed<milliseconds> parsed = parse_duration(value);
  if (!parsed.ok()) return base::Failure{parsed.error()};
  if (*parsed < std::chrono::hours(1)) return base::Failure{std::string("must be at least 1h")};
  config.*member = std::chrono::duration_cast<seconds>(*parsed);
  return true;
}
template <auto member>
Applied networks(Config& config, std::string_view value) {
  return store(parse_networks(value), config.*member);
}

// As in the lists of tenants and endpoints: every address includes the cloud's metadata service.
Applied allow_networks(Config& config, std::string_view value) {
  auto parsed = parse_networks(value);
  if (!parsed) return base::Failure{parsed.error()};
  for (const Network& network : *parsed)
    if (network.prefix_bits == 0)
      return base::Failure{"must not be every address (" + network.text() +
                           "); list the private networks that deliveries may reach"};
  config.allow_networks = std::move(*parsed);
  return true;
}

Applied database_url(std::string& member, std::string_view value) {
  const std::string_view url = trimmed(value);
  const bool is_url = url.starts_with("postgres://") || url.starts_with("postgresql://");
  const bool is_pairs = url.find("://") == std::string_view::npos && url.find('=') != std::string_view::npos;
  if (!is_url && !is_pairs)
    return base::Failure{
        std::string("must be a URL that begins with postgres:// or a list of libpq's key=value pairs")};
  member = std::string(url);
  return true;
}

Applied admin_key(Config& config, std::string_view value) {
  const std::string_view key = trimmed(value);
  if (key.size() < 32) return base::Failure{std::string("must have 32 characters or more")};
  if (!std::ranges::all_of(key, [](char c) { return c > ' ' && c < '\x7f'; }))
    return base::Failure{std::string("must consist of printable ASCII characters without spaces")};
  config.admin_key = std::string(key);
  return true;
}

Applied listen(Config& config, std::string_view value) {
  const std::optional<HostPort> parsed = HostPort::parse(trimmed(value));
  if (!parsed)
    return base::Failure{std::string("must be an address and a port, such as 127.0.0.1:8090 or [::1]:8090")};
  config.listen = *parsed;
  return true;
}

Applied public_url(Config& config, std::string_view value) {
  const Applied applied = store(parse_url(value, {"https", "http"}), config.public_url);
  while (applied.ok() && config.public_url.ends_with('/')) config.public_url.pop_back();
  return applied;
}

Applied bind_address(Config& config, std::string_view value) {
  const std::string address(trimmed(value));
  if (!IpAddress::parse(address))
    return base::Failure{std::string("must be an IPv4 or IPv6 address of this machine")};
  config.bind_address = address;
  return true;
}

Applied on_rejected(Config& config, std::string_view value) {
  const std::string_view word = trimmed(value);
  if (word != "dead_letter" && word != "retry" && word != "pause")
    return base::Failure{std::string("must be dead_letter, retry or pause")};
  config.default_on_rejected = std::string(word);
  return true;
}

Applied retry_schedule(Config& config, std::string_view value) {
  constexpr size_t delays_max = 100;
  constexpr std::chrono::hours delay_max{7 * 24};
  std::vector<milliseconds> delays;
  for (const std::string_view text : split_list(value)) {
    const Parsed<milliseconds> delay = parse_duration(text);
    if (!delay.ok() || *delay > delay_max || delays.size() == delays_max) {
      delays.clear();
      break;
    }
    delays.push_back(*delay);
  }
  if (delays.empty())
    return base::Failure{
        std::string("must be a list of 1 to 100 delays of at most 7d each, such as 30s,2m,10m,1h")};
  config.default_retry_schedule = std::move(delays);
  return true;
}

Applied user_agent(Config& config, std::string_view value) {
  const std::string_view agent = trimmed(value);
  const bool is_printable = std::ranges::all_of(agent, [](char c) { return c >= ' ' && c < '\x7f'; });
  if (agent.empty() || agent.size() > 256 || !is_printable)
    return base::Failure{std::string("must be 1 to 256 printable ASCII characters")};
  config.user_agent = std::string(agent);
  return true;
}

template <auto member>
Applied absolute_paths(Config& config, std::string_view value) {
  (config.*member).clear();
  for (const std::string_view path : split_list(value)) {
    if (!path.starts_with('/') || path.size() < 2)
      return base::Failure{std::string("must be absolute paths")};
    (config.*member).emplace_back(path);
  }
  return true;
}

Applied environment_prefix(Config& config, std::string_view value) {
  const std::string_view prefix = trimmed(value);
  if (prefix.size() < 3 || prefix.starts_with("POSTRIDER"))
    return base::Failure{std::string("must have 3 characters or more, and not begin with POSTRIDER")};
  config.secret_environment_prefix = std::string(prefix);
  return true;
}

// As browsers send them: scheme, host and, if need be, port.
Applied cors_origins(Config& config, std::string_view value) {
  config.cors_origins.clear();
  for (const std::string_view origin : split_list(value)) {
    const bool has_scheme = origin.starts_with("https://") || origin.starts_with("http://");
    const bool has_path = has_scheme && origin.find('/', origin.find("://") + 3) != std::string_view::npos;
    if (origin != "*" && (!has_scheme || has_path))
      return base::Failure{std::string("must be a list of origins such as https://app.example.com, or *")};
    config.cors_origins.emplace_back(origin);
  }
  return true;
}

Applied metrics_tenants(Config& config, std::string_view value) {
  constexpr size_t tenants_max = 100;
  config.metrics_tenants.clear();
  for (const std::string_view tenant : split_list(value)) config.metrics_tenants.emplace_back(tenant);
  if (config.metrics_tenants.size() > tenants_max)
    return base::Failure{std::string("must be a list of at most 100 tenants")};
  return true;
}

using C = Config;
constexpr int64_t kUnlimited = std::numeric_limits<int32_t>::max();
constexpr int64_t kMinuteMs = 60'000;

const Setting table[] = {
    // Database and identity
    {"database_url", "", "a private Postgres in data_dir", "Postgres to use.", Secrecy::url,
     [](C& c, std::string_view v) { return database_url(c.database_url, v); }},
    {"direct_database_url", "", "database_url",
     "Postgres without the pooler, for LISTEN and leases when database_url is a pooler.", Secrecy::url,
     [](C& c, std::string_view v) { return database_url(c.direct_database_url, v); }},
    {"pooler_keeps_statements", "false", "",
     "The pooler of database_url keeps prepared statements (pgbouncer from 1.21 on, with "
     "max_prepared_statements).",
     Secrecy::open, boolean<&C::pooler_keeps_statements>},
    {"data_dir", "./.postrider", "", "Directory of the private Postgres and its master key.", Secrecy::open,
     text<&C::data_dir>},
    {"roles", "all", "", "Roles of this node: all, or a list of api, relay, delivery, inbox, upkeep.",
     Secrecy::open, [](C& c, std::string_view v) { return store(parse_roles(v), c.roles); }},
    {"admin_key", "", "generated at the first start and printed once",
     "API key with the role admin: any string of 32 characters or more.", Secrecy::masked, admin_key},
    {"master_key", "", "generated in data_dir for the private Postgres, required otherwise",
     "32 bytes in base64 or hex; encrypts endpoint secrets. Older keys, still accepted for reading, follow "
     "after commas.",
     Secrecy::masked, text<&C::master_key>},
    {"master_key_command", "", "none", "A shell command that prints the master key, instead of master_key.",
     Secrecy::open, text<&C::master_key_command>},
    {"secret_directories", "", "none",
     "Directories below which endpoint secrets may refer to files (file:/path).", Secrecy::open,
     absolute_paths<&C::secret_directories>},
    {"secret_environment_prefix", "", "none",
     "Prefix of the environment variables to which endpoint secrets may refer (env:NAME).", Secrecy::open,
     environment_prefix},
    {"secret_programs", "", "none",
     "Programs whose output endpoint secrets may refer to (exec:/program argument).", Secrecy::open,
     absolute_paths<&C::secret_programs>},
    {"secret_lifetime", "5m", "", "How long a resolved secret reference is cached.", Secrecy::open,
     duration<&C::secret_lifetime, 1'000, 24 * 60 * kMinuteMs>},
    {"buckets", "256", "",
     "Slices of endpoints that nodes share out, and the largest number of nodes that can; fixed when the "
     "schema "
     "is created.",
     Secrecy::open, integer<&C::buckets, 1, 4'096>},
    {"lease_seconds", "10", "", "Other nodes take over after no heartbeat for this long.", Secrecy::open,
     integer<&C::lease_seconds, 2, 300>},

    // HTTP
    {"listen", "127.0.0.1:8090", "", "Address and port of the API and of inbound webhooks.", Secrecy::open,
     listen},
    {"public_url", "", "from listen",
     "Public URL of this server, used in the URLs of sources, in e-mails and to verify Twilio's requests.",
     Secrecy::open, public_url},
    {"trusted_proxies", "", "none", "Networks of proxies whose X-Forwarded-For is trusted.", Secrecy::open,
     networks<&C::trusted_proxies>},
    {"connections_max", "1024", "", "Open connections to the server.", Secrecy::open,
     count<&C::connections_max>},
    {"connections_per_address_max", "256", "",
     "Open connections from one client address (IPv6: one /64) that have not made an authenticated request "
     "yet. "
     "Trusted proxies and loopback are not counted. 0: no limit.",
     Secrecy::open, integer<&C::connections_per_address_max, 0, 1'000'000>},
    {"cors_origins", "", "none",
     "Origins whose pages may use the API from a browser, for example https://app.example.com; * for all.",
     Secrecy::open, cors_origins},
    {"api_body_bytes_max", "1MiB", "", "Body of an API request.", Secrecy::open,
     size<&C::api_body_bytes_max>},
    {"batch_body_bytes_max", "16MiB", "", "Body of a batch of events.", Secrecy::open,
     size<&C::batch_body_bytes_max>},
    {"request_head_bytes_max", "16KiB", "", "Request line and headers together.", Secrecy::open,
     size<&C::request_head_bytes_max>},
    {"request_fields_max", "100", "", "Header fields of a request.", Secrecy::open,
     integer<&C::request_fields_max, 10, 10'000>},
    {"request_target_bytes_max", "8KiB", "", "Path and query of a request.", Secrecy::open,
     size<&C::request_target_bytes_max>},
    {"request_timeout", "30s", "",
     "Time limit for the head of a request, and for its body; longer if it arrives at 16 KiB/s or more.",
     Secrecy::open, duration<&C::request_timeout, 1'000, 60 * kMinuteMs>},
    {"idle_timeout", "75s", "", "How long a connection may wait for its next request.", Secrecy::open,
     duration<&C::idle_timeout, 1'000, 60 * kMinuteMs>},

    // Tenants, events and endpoints
    {"create_tenants", "false", "", "Whether publishing to an unknown tenant creates it.", Secrecy::open,
     boolean<&C::create_tenants>},
    {"allow_unknown_event_types", "true", "",
     "Whether events of types that are not in the catalogue may be published.", Secrecy::open,
     boolean<&C::allow_unknown_event_types>},
    {"payload_bytes_max", "256KiB", "", "Maximum size of an event's data.", Secrecy::open,
     size<&C::payload_bytes_max>},
    {"batch_events_max", "1000", "", "Events in one batch.", Secrecy::open,
     integer<&C::batch_events_max, 1, 10'000>},
    {"endpoints_max", "50", "", "Endpoints of a tenant that has no limit of its own.", Secrecy::open,
     count<&C::endpoints_max>},
    {"keys_per_tenant_max", "100", "", "Keys bound to one tenant, without revoked and expired ones.",
     Secrecy::open, count<&C::keys_per_tenant_max>},
    {"tokens_per_tenant_max", "1000", "", "Tokens of one tenant, without revoked and expired ones.",
     Secrecy::open, count<&C::tokens_per_tenant_max>},
    {"subscriptions_max", "100", "", "Subscriptions of an endpoint.", Secrecy::open,
     integer<&C::subscriptions_max, 1, 10'000>},
    {"custom_headers_max", "20", "", "Custom headers of an endpoint.", Secrecy::open,
     integer<&C::custom_headers_max, 0, 100>},
    {"custom_header_bytes_max", "4KiB", "", "Name and value of one custom header.", Secrecy::open,
     size<&C::custom_header_bytes_max>},
    {"default_max_attempts", "8", "", "Attempts for deliveries of an endpoint without its own max_attempts.",
     Secrecy::open, integer<&C::default_max_attempts, 1, 1'000>},
    {"default_timeout_ms", "10000", "", "Time for one attempt, from name lookup to the last byte read.",
     Secrecy::open, integer<&C::default_timeout_ms, 100, 300'000>},
    {"default_give_up_seconds", "259200", "", "Age at which a delivery expires.", Secrecy::open,
     integer<&C::default_give_up_seconds, 1, kUnlimited>},
    {"default_max_in_flight", "10", "", "Maximum concurrent attempts to one endpoint.", Secrecy::open,
     integer<&C::default_max_in_flight, 1, 10'000>},
    {"default_on_rejected", "dead_letter", "",
     "What happens after a 3xx or 4xx response that is not retried anyway: dead_letter, retry or pause.",
     Secrecy::open, on_rejected},
    {"default_retry_schedule", "", "30s,2m,10m,30m,2h,6h,24h",
     "Delays before the second and later attempts; the last one repeats.", Secrecy::open, retry_schedule},
    {"user_agent", "", "postrider/ and the version", "User-Agent header of deliveries and notices.",
     Secrecy::open, user_agent},

    // Maximum values for customers
    {"customer_max_in_flight", "100", "", "Largest max_in_flight that a customer may give an endpoint.",
     Secrecy::open, integer<&C::customer_max_in_flight, 1, 10'000>},
    {"customer_timeout_ms", "30000", "", "Largest timeout_ms that a customer may give an endpoint.",
     Secrecy::open, integer<&C::customer_timeout_ms, 100, 120'000>},
    {"customer_rate_per_second", "0", "",
     "Largest rate_per_second that a customer may give an endpoint; 0: no maximum.", Secrecy::open,
     integer<&C::customer_rate_per_second, 0, 1'000'000>},
    {"customer_replay_rate_per_second", "50", "", "Largest rate_per_second of a customer's replays.",
     Secrecy::open, integer<&C::customer_replay_rate_per_second, 1, 10'000>},
    {"customer_queued_replays_max", "10", "",
     "Replays of a tenant that may wait before its customer cannot request another one.", Secrecy::open,
     integer<&C::customer_queued_replays_max, 1, 1'000>},
    {"customer_may_erase", "false", "", "Whether customers may erase payloads of their tenant.",
     Secrecy::open, boolean<&C::customer_may_erase>},

    // Where deliveries may go
    {"allow_http", "false", "", "Whether endpoint URLs may be http:// as well as https://.", Secrecy::open,
     boolean<&C::allow_http>},
    {"allow_networks", "", "none", "Networks that deliveries may reach although they are private.",
     Secrecy::open, allow_networks},
    {"allow_ports", "80,443,1024-65535", "", "Ports that deliveries may reach.", Secrecy::open,
     [](C& c, std::string_view v) { return store(parse_ports(v), c.allow_ports); }},
    {"extra_ca_file", "", "none",
     "PEM file with further certificate authorities, for private endpoints and the mail server.",
     Secrecy::open, text<&C::extra_ca_file>},
    {"bind_address", "", "none", "Source address of deliveries.", Secrecy::open, bind_address},

    // Engine
    {"shards", "0", "half of the cores", "Delivery threads.", Secrecy::open, integer<&C::shards, 0, 256>},
    {"api_threads", "0", "half of the cores, at most 4", "Threads that serve HTTP.", Secrecy::open,
     integer<&C::api_threads, 0, 256>},
    {"max_in_flight", "4096", "", "Maximum concurrent attempts of this node.", Secrecy::open,
     count<&C::max_in_flight>},
    {"lane_rows_max", "500", "", "Deliveries of one endpoint kept in memory.", Secrecy::open,
     integer<&C::lane_rows_max, 1, 100'000>},
    {"lane_bytes_max", "4MiB", "", "Bodies of one endpoint kept in memory.", Secrecy::open,
     size<&C::lane_bytes_max>},
    {"buffer_bytes_max", "64MiB", "", "Bodies of all endpoints kept in memory.", Secrecy::open,
     size<&C::buffer_bytes_max>},
    {"publish_queue_items_max", "10000", "",
     "Publish requests waiting for a commit before the response is 503.", Secrecy::open,
     count<&C::publish_queue_items_max>},
    {"publish_batch_items_max", "500", "", "Events in one commit.", Secrecy::open,
     integer<&C::publish_batch_items_max, 1, 10'000>},
    {"publish_batch_rows_max", "5000", "", "Deliveries queued by one commit.", Secrecy::open,
     integer<&C::publish_batch_rows_max, 1, 100'000>},
    {"publish_batch_bytes_max", "8MiB", "", "Bodies in one commit.", Secrecy::open,
     size<&C::publish_batch_bytes_max>},
    {"settle_batch_items_max", "500", "", "Results of attempts in one commit.", Secrecy::open,
     integer<&C::settle_batch_items_max, 1, 10'000>},
    {"wide_fanout_endpoints", "2000", "",
     "Number of endpoints above which an event is fanned out in the background.", Secrecy::open,
     integer<&C::wide_fanout_endpoints, 1, 100'000>},
    {"fanout_chunk_rows", "2000", "", "Deliveries queued by one step of a wide fan-out.", Secrecy::open,
     integer<&C::fanout_chunk_rows, 1, 100'000>},
    {"pooled_connections_max", "10000", "", "Idle connections to endpoints kept open by this node.",
     Secrecy::open, integer<&C::pooled_connections_max, 0, 1'000'000>},
    {"response_bytes_max", "64KiB", "", "Bytes of an endpoint's response that are read.", Secrecy::open,
     size<&C::response_bytes_max>},
    {"breaker_failures", "5", "", "Transient failures in a row after which an endpoint is only probed.",
     Secrecy::open, integer<&C::breaker_failures, 1, 10'000>},
    {"drain_timeout", "30s", "", "How long a shutdown waits for attempts in flight.", Secrecy::open,
     duration<&C::drain_timeout, 0, 60 * kMinuteMs>},
    {"relay_poll", "500ms", "", "How often the outbox is polled, besides LISTEN.", Secrecy::open,
     duration<&C::relay_poll, 10, kMinuteMs>},
    {"relay_notify", "true", "",
     "Whether publish() in SQL wakes a sleeping relay by NOTIFY; false: it is found by polling.",
     Secrecy::open, boolean<&C::relay_notify>},
    {"private_capture", "false", "",
     "Starts the private Postgres with wal_level = logical, which change data capture needs.", Secrecy::open,
     boolean<&C::private_capture>},

    // Retention
    {"retain_events", "30d", "", "How long events and their idempotency keys are kept.", Secrecy::open,
     retention<&C::retain_events>},
    {"retain_attempts", "30d", "", "How long the history of attempts is kept.", Secrecy::open,
     retention<&C::retain_attempts>},
    {"retain_outbox", "7d", "", "How long processed outbox rows are kept.", Secrecy::open,
     retention<&C::retain_outbox>},
    {"retain_inbox", "30d", "", "How long inbound messages are kept.", Secrecy::open,
     retention<&C::retain_inbox>},
    {"retain_audit", "365d", "", "How long the audit log is kept.", Secrecy::open,
     retention<&C::retain_audit>},
    {"retain_rollups", "400d", "", "How long hourly figures are kept.", Secrecy::open,
     retention<&C::retain_rollups>},
    {"archive_dir", "", "none",
     "Directory to which days are archived, as compressed NDJSON, before they are dropped.", Secrecy::open,
     text<&C::archive_dir>},

    // Endpoint health
    {"disable_after", "5d", "",
     "An endpoint is disabled after failing for this long; warnings are sent at 50, 70 and 90 %.",
     Secrecy::open, duration<&C::disable_after, 1'000, 366 * 24 * 60 * kMinuteMs>},
    {"first_notice_after", "15m", "",
     "Contacts get a first notice after an endpoint has failed for this long.", Secrecy::open,
     duration<&C::first_notice_after, 1'000, 5 * 24 * 60 * kMinuteMs>},
    {"first_notice_failures", "3", "", "Minimum number of failed attempts before a first notice.",
     Secrecy::open, integer<&C::first_notice_failures, 1, 10>},
    {"degraded_below", "80", "",
     "Contacts and operators are notified when less than this percentage of the attempts of the last hour "
     "succeeds; 0 turns it off.",
     Secrecy::open, integer<&C::degraded_below, 0, 100>},
    {"degraded_attempts", "20", "", "Minimum number of attempts in the last hour for `degraded_below`.",
     Secrecy::open, integer<&C::degraded_attempts, 1, 1'000'000>},

    // Notices and mail
    {"smtp_url", "", "none", "Mail server for notices: smtp://user:password@host:port or smtps://.",
     Secrecy::url,
     [](C& c, std::string_view v) { return store(parse_url(v, {"smtp", "smtps"}), c.smtp_url); }},
    {"mail_from", "postrider@localhost", "", "Sender of notices by mail.", Secrecy::open,
     text<&C::mail_from>},
    {"notices_per_tenant", "200", "",
     "Notices to the contacts of one tenant per day, by mail and URL; more wait for the next day.",
     Secrecy::open, integer<&C::notices_per_tenant, 20, 1'000'000>},
    {"confirmation_mails_per_tenant", "20", "",
     "Confirmation mails per day to the contacts of one tenant; more wait for the next day.", Secrecy::open,
     count<&C::confirmation_mails_per_tenant>},
    {"confirmation_mails_per_address", "3", "",
     "Confirmation mails per day to one address, over all tenants; three times that in 30 days.",
     Secrecy::open, integer<&C::confirmation_mails_per_address, 1, 1'000>},

    // Logging
    {"log_level", "info", "", "debug, info, warn or error.", Secrecy::open,
     [](C& c, std::string_view v) { return store(parse_log_level(v), c.log_level); }},
    {"metrics_tenants", "", "none",
     "Tenants with separate metrics, up to 100. The others are only in the totals.", Secrecy::open,
     metrics_tenants},
    {"log_format", "auto", "text on a terminal, otherwise json", "json, text or auto.", Secrecy::open,
     [](C& c, std::string_view v) { return store(parse_log_format(v), c.log_format); }},
};

}  // namespace

std::string Setting::environment_name() const {
  std::string name = "POSTRIDER_";
  for (const char c : key) name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

std::string Setting::flag_name() const {
  std::string name = "--" + std::string(key);
  std::ranges::replace(name, '_', '-');
  return name;
}

std::span<const Setting> settings() {
  return table;
}

const Setting* find_setting(std::string_view key) {
  const auto found = std::ranges::find(table, key, &Setting::key);
  return found == std::end(table) ? nullptr : &*found;
}

}  // namespace postrider::config
