#include "postrider/upkeep/notices.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "postrider/base/check.hpp"
#include "postrider/base/encoding.hpp"
#include "postrider/base/version.hpp"
#include "postrider/crypto/digest.hpp"
#include "postrider/crypto/random.hpp"
#include "postrider/crypto/signing_key.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/registry/allow_networks.hpp"
#include "postrider/registry/contact_links.hpp"
#include "postrider/registry/contacts.hpp"
#include "postrider/telemetry/log.hpp"
#include "postrider/upkeep/notices.sql.hpp"

namespace postrider::upkeep {

namespace {

using namespace std::chrono_literals;
using runtime::Task;

constexpr auto kInterval = 2s;
constexpr std::chrono::nanoseconds kPostTimeout = 10s;
constexpr int kRetrySeconds = 300;
constexpr int kTriesMax = 12;

bool is_url(const std::string& contact) {
  return contact.find("://") != std::string::npos;
}

Notice read_notice(const sql::take_notice::Row& row) {
  Notice notice;
  notice.endpoint_uuid = row.endpoint_id;
  notice.tenant = row.tenant_id;
  notice.endpoint = row.endpoint;
  notice.host = host_of(row.url);
  notice.kind = row.kind;
  notice.stage = row.stage;
  notice.attempts = row.attempts;
  notice.failed = row.failed;
  notice.failing_since = row.failing_since;
  notice.cause = row.cause;
  if (row.contacts) notice.contacts.assign(row.contacts->begin(), row.contacts->end());
  notice.tries = row.tries;
  return notice;
}

Notice read_notice(const sql::take_dead_letter_notice::Row& row) {
  Notice notice;
  notice.tenant = row.tenant_id;
  notice.kind = "dead_letters";
  notice.dead_letters = read_dead_letters(row.content.value());
  if (row.contacts) notice.contacts.assign(row.contacts->begin(), row.contacts->end());
  notice.tries = row.tries;
  return notice;
}

// The object in a log line: the endpoint, or no value if the notice is about the whole tenant.
std::optional<std::string> logged_endpoint(const Notice& notice) {
  return notice.endpoint.empty() ? std::nullopt : std::optional(notice.endpoint);
}

}  // namespace

Notices::Notices(runtime::Loop& loop, Tools tools, NoticeOptions options)
    : Service(loop),
      tools_(tools),
      metrics_(tools.metrics),
      options_(runtime::validated(std::move(options))) {}

void NoticeOptions::validate() const {
  CHECK(per_tenant >= 0 && workers > 0 && workers_per_tenant > 0 && time > 0s);
}

Task<runtime::SteadyTime> Notices::pass(runtime::SteadyTime now) {
  try {
    const bool has_started = co_await start_one();
    if (has_started) co_return now;
  } catch (const pg::Error& error) {
    if (error.kind() != pg::Kind::unavailable)
      telemetry::log_warn("notice_failed").field("error", error.what());
  }
  co_return base::BootClock::now() + kInterval;
}

std::vector<std::string> Notices::busy_tenants() const {
  std::vector<std::string> busy;
  for (const auto& [tenant, count] : sending_)
    if (count >= options_.workers_per_tenant) busy.push_back(tenant);
  return busy;
}

Task<bool> Notices::start_one() {
  if (spawned() >= options_.workers) co_return false;
  const std::vector<std::string> busy = busy_tenants();
  const auto rows =
      co_await tools_.link.run(sql::take_notice{.busy = busy, .per_tenant = options_.per_tenant});
  if (rows.empty()) co_return co_await start_dead_letters(busy);
  const auto row = rows.front();
  if (row.outcome == "capped") {
    metrics_.notices.at("capped").add();
    telemetry::log_warn("notice_capped").field("tenant_id", row.tenant_id).field("endpoint_id", row.endpoint);
  }
  if (row.outcome == "send") spawn(notify_all(read_notice(row)));
  co_return true;
}

Task<bool> Notices::start_dead_letters(std::vector<std::string> busy) {
  const auto rows =
      co_await tools_.link.run(sql::take_dead_letter_notice{.busy = busy, .per_tenant = options_.per_tenant});
  if (rows.empty()) co_return false;
  const auto row = rows.front();
  if (row.outcome == "capped") {
    metrics_.notices.at("capped").add();
    telemetry::log_warn("notice_capped").field("tenant_id", row.tenant_id);
  }
  if (row.outcome == "send") spawn(notify_all(read_notice(row)));
  co_return true;
}

Task<void> Notices::store_unreached(const Notice& notice, std::vector<std::string> unreached) {
  if (notice.dead_letters)
    co_await tools_.link.run(sql::finish_dead_letter_notice{
        .unreached = unreached, .retry_seconds = kRetrySeconds, .tenant = notice.tenant});
  else
    co_await tools_.link.run(sql::finish_notice{.endpoint = notice.endpoint_uuid,
                                                .kind = notice.kind,
                                                .stage = notice.stage,
                                                .unreached = unreached,
                                                .retry_seconds = kRetrySeconds});
}

Task<void> Notices::notify_all(Notice notice) {
  ++sending_[notice.tenant];
  // Mails first: a mail server of the operator's own takes less time than a URL that does not respond.
  if (notice.tries == 1) std::partition(notice.contacts.begin(), notice.contacts.end(), std::not_fn(is_url));
  const base::SteadyTime deadline = base::BootClock::now() + options_.time;
  const bool is_last_try = notice.tries >= kTriesMax;
  std::vector<std::string> unreached, failed;
  try {
    for (const std::string& contact : notice.contacts) {
      if (is_stopping() || base::BootClock::now() >= deadline) {
        unreached.push_back(contact);
        continue;
      }
      const std::optional<std::string> error = co_await notify(notice, contact, deadline);
      metrics_.notices.at(error ? "failed" : "sent").add();
      if (error) {
        telemetry::log_warn("notice_failed")
            .field("tenant_id", notice.tenant)
            .field("endpoint_id", logged_endpoint(notice))
            .field("error", *error);
        failed.push_back(contact);
      } else {
        telemetry::log_info("notice_sent")
            .field("tenant_id", notice.tenant)
            .field("endpoint_id", logged_endpoint(notice))
            .field("kind", notice.kind);
      }
    }
    // The contacts that had no turn come first next time.
    std::vector<std::string> left = std::move(unreached);
    left.insert(left.end(), failed.begin(), failed.end());
    if (is_last_try) left.clear();
    co_await store_unreached(notice, left);
  } catch (const pg::Error& error) {
    // It is taken again after an hour.
    telemetry::log_warn("notice_failed").field("tenant_id", notice.tenant).field("error", error.what());
  }
  if (--sending_[notice.tenant] == 0) sending_.erase(notice.tenant);
  wake();
}

Task<std::optional<std::string>> Notices::notify(const Notice& notice, std::string contact,
                                                 base::SteadyTime deadline) {
  auto sending = is_url(contact) ? post(notice, std::move(contact), deadline)
                                 : mail(notice, std::move(contact), deadline);
  co_return co_await sending;
}

Task<std::optional<std::string>> Notices::post(const Notice& notice, std::string contact,
                                               base::SteadyTime deadline) {
  const auto url = http::parse_url(contact);
  if (!url) co_return "the contact is not a URL";
  const std::string body = json_of(notice);
  const std::string id = "ntc_" + base::hex_encode(crypto::random_bytes(16));
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(base::wall_now().time_since_epoch());
  const std::string timestamp = std::to_string(now.count());
  std::string headers;
  bool has_headers = http::append_header(headers, "content-type", "application/json") &&
                     http::append_header(headers, "user-agent", options_.user_agent) &&
                     http::append_header(headers, "webhook-id", id) &&
                     http::append_header(headers, "webhook-timestamp", timestamp);
  const auto [secrets, networks] = co_await tools_.link.run(sql::contact_secret{.tenant = notice.tenant},
                                                            sql::contact_networks{.tenant = notice.tenant});
  if (!secrets.empty()) {
    const auto text = tools_.keys.open(crypto::Purpose::stored_secret, secrets.front().sealed.view,
                                       registry::contact_secret_context(notice.tenant));
    if (!text.ok()) co_return "the tenant's contact secret cannot be read";
    const auto key = crypto::SigningKey::from_secret(crypto::SignatureScheme::standard, *text);
    if (!key) co_return "the tenant's contact secret " + key.error();
    const auto digest = crypto::hmac_sha256(key->hmac_key(), {id, ".", timestamp, ".", body});
    has_headers &=
        http::append_header(headers, "webhook-signature", "v1," + base::base64_encode(digest.view()));
  }
  if (!has_headers) co_return "a header cannot be written";
  std::vector<base::Network> allowed;
  if (!networks.empty()) allowed = registry::networks_of(networks.front().allow_networks);
  const auto profile = registry::profile_of_tenant(tools_.client, notice.tenant, allowed);
  http::OutboundRequest request{.url = *url};
  request.profile = profile.get();
  request.headers = headers;
  request.body = body;
  request.deadline = std::min(deadline, base::BootClock::now() + kPostTimeout);
  const http::Exchange exchange = co_await tools_.client.send(request);
  if (const http::NetFailure* failure = exchange.failure())
    co_return failure->detail.empty() ? std::string(http::describe(failure->error)) : failure->detail;
  const int status = exchange.answer()->status;
  if (status >= 200 && status < 300) co_return std::nullopt;
  co_return "the contact responded with " + std::to_string(status);
}

Task<std::optional<std::string>> Notices::mail(const Notice& notice, std::string contact,
                                               base::SteadyTime deadline) {
  if (!tools_.mails.is_configured()) co_return "smtp_url is not set";
  registry::NewLink wanted{registry::LinkPurpose::unsubscribe, notice.tenant, contact};
  const std::string path = co_await registry::create_contact_link(tools_.link, std::move(wanted));
  Mail mail = mail_of(notice, tools_.mails.link_to(path));
  mail.to = std::move(contact);
  const auto left = std::chrono::ceil<std::chrono::seconds>(deadline - base::BootClock::now());
  const std::chrono::seconds timeout = std::max(left, 1s);
  co_return co_await tools_.mails.send(std::move(mail), timeout);
}

}  // namespace postrider::upkeep
