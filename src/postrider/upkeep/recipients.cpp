#include "postrider/upkeep/recipients.hpp"

#include <utility>

#include "postrider/telemetry/log.hpp"
#include "postrider/upkeep/recipients.sql.hpp"

namespace postrider::upkeep {

namespace {
using namespace std::chrono_literals;
constexpr auto kInterval = 300s;
constexpr auto kRetry = 5s;
}  // namespace

std::vector<MissingRecipient> missing_recipients(const Recipients& recipients, bool has_mail_server) {
  std::vector<MissingRecipient> missing;
  if (recipients.tenants_without_contact > 0)
    missing.push_back(
        {"some tenants have no confirmed contact; they get no notices about their endpoints",
         "Add a contact with `postrider tenant update TENANT --contact ADDRESS`. `postrider doctor` "
         "lists the tenants."});
  if (recipients.has_mail_contact && !has_mail_server)
    missing.push_back({"some contacts are e-mail addresses, but smtp_url is not set; they get no mail",
                       "Set POSTRIDER_SMTP_URL, or use URLs as contacts."});
  if (!recipients.has_operator)
    missing.push_back({"no endpoint of the tenant postrider is subscribed to operational events",
                       "Operators are not notified of failing endpoints and dead letters. Create one with "
                       "`postrider endpoint create postrider --url URL --event-type '*'`."});
  return missing;
}

void RecipientNotes::set(std::string text) {
  const std::lock_guard lock(lock_);
  text_ = std::move(text);
}

std::string RecipientNotes::text() const {
  const std::lock_guard lock(lock_);
  return text_;
}

runtime::Task<runtime::SteadyTime> RecipientWatch::pass(runtime::SteadyTime) {
  std::chrono::seconds next = kInterval;
  try {
    co_await look();
  } catch (const pg::Error& error) {
    telemetry::log_debug("recipient_watch_failed").field("error", error.what());
    next = kRetry;
  }
  co_return base::BootClock::now() + next;
}

runtime::Task<void> RecipientWatch::look() {
  const auto rows = co_await link_.run(sql::recipients{});
  const auto row = rows.front();
  const Recipients recipients{.tenants_without_contact = row.tenants,
                              .has_mail_contact = row.has_mail_contact,
                              .has_operator = row.has_operator};
  const auto missing = missing_recipients(recipients, options_.has_mail_server);
  std::string text;
  for (const MissingRecipient& each : missing) text += (text.empty() ? "" : "\n") + each.what;
  if (text == notes_.text()) co_return;
  for (const MissingRecipient& each : missing)
    telemetry::log_warn("no_recipients").field("note", each.what).field("advice", each.advice);
  notes_.set(std::move(text));
}

}  // namespace postrider::upkeep
