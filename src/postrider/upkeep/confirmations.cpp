#include "postrider/upkeep/confirmations.hpp"

#include <utility>

#include "postrider/base/check.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/registry/contact_links.hpp"
#include "postrider/telemetry/log.hpp"
#include "postrider/upkeep/confirmations.sql.hpp"

namespace postrider::upkeep {

namespace {

using namespace std::chrono_literals;
using runtime::Task;

constexpr auto kInterval = 2s;
constexpr auto kMailTimeout = 30s;
constexpr int kRetrySeconds = 300;
constexpr int kTriesMax = 12;

}  // namespace

Mail confirmation_mail(const std::string& url) {
  Mail mail;
  mail.subject = "Confirm your address for webhook notices";
  mail.text =
      "This e-mail address was entered as a contact for webhook endpoints. Contacts are notified when an\n"
      "endpoint keeps failing or is disabled.\n\n"
      "To receive these notices, open this page and press the button:\n\n" +
      url + "\n\nThe link works for " + std::to_string(registry::confirmation_link_days) +
      " days. If you do not want notices, ignore this mail:\n"
      "none are sent to an address that has not confirmed.\n";
  return mail;
}

Confirmations::Confirmations(runtime::Loop& loop, pg::Link& link, MailSender& mails,
                             const telemetry::Metrics& metrics, ConfirmationOptions options)
    : Service(loop), link_(link), mails_(mails), metrics_(metrics), options_(runtime::validated(options)) {}

void ConfirmationOptions::validate() const {
  CHECK(per_tenant >= 0 && per_address >= 0);
}

Task<runtime::SteadyTime> Confirmations::pass(runtime::SteadyTime now) {
  if (!mails_.is_configured()) co_return now + kInterval;
  try {
    const bool has_sent = co_await send_one();
    if (has_sent) co_return now;
  } catch (const pg::Error& error) {
    if (error.kind() != pg::Kind::unavailable)
      telemetry::log_warn("confirmation_failed").field("error", error.what());
  }
  co_return base::BootClock::now() + kInterval;
}

Task<bool> Confirmations::send_one() {
  const auto rows = co_await link_.run(
      sql::take_confirmation{.per_tenant = options_.per_tenant, .per_address = options_.per_address});
  if (rows.empty()) co_return false;
  const auto row = rows.front();
  const std::string tenant(row.tenant_id);
  if (row.outcome == "capped") {
    metrics_.confirmation_mails.at("capped").add();
    telemetry::log_warn("confirmation_capped").field("tenant_id", tenant);
  }
  if (row.outcome != "send") co_return true;

  const std::string address(row.address);
  registry::NewLink wanted{registry::LinkPurpose::confirm, tenant, address};
  const std::string path = co_await registry::create_contact_link(link_, std::move(wanted));
  Mail mail = confirmation_mail(mails_.link_to(path));
  mail.to = row.recipient.value();
  const std::optional<std::string> failure = co_await mails_.send(std::move(mail), kMailTimeout);
  metrics_.confirmation_mails.at(failure ? "failed" : "sent").add();
  if (failure)
    telemetry::log_warn("confirmation_failed").field("tenant_id", tenant).field("error", *failure);
  else
    telemetry::log_info("confirmation_sent").field("tenant_id", tenant);
  const bool is_done = !failure || row.tries >= kTriesMax;
  co_await link_.run(sql::finish_confirmation{
      .tenant = tenant, .address = address, .is_done = is_done, .retry_seconds = kRetrySeconds});
  co_return true;
}

}  // namespace postrider::upkeep
