// Asks e-mail addresses on tenants' lists of contacts to confirm. What is asked is in the table
// contact_request; the mail has a link to a page with a button and no text that a customer wrote.
#pragma once

#include "postrider/pg/link.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"
#include "postrider/telemetry/metrics.hpp"
#include "postrider/upkeep/mail_sender.hpp"

namespace postrider::upkeep {

struct ConfirmationOptions {
  int per_tenant = 20;  // mails a day
  int per_address = 3;  // mails a day to one mailbox, over all tenants; three times that in 30 days
};

Mail confirmation_mail(const std::string& url);

class Confirmations {
 public:
  // All of them outlive it.
  Confirmations(runtime::Loop& loop, pg::Link& link, MailSender& mails, const telemetry::Metrics& metrics,
                ConfirmationOptions options);

  void start();  // nothing without a mail server: requests wait until there is one
  runtime::Task<void> stop();

  runtime::Task<bool> run_once();  // one mail; false: none is due. Throws pg::Error

 private:
  runtime::Task<void> run();

  pg::Link& link_;
  MailSender& mails_;
  const telemetry::Metrics& metrics_;
  ConfirmationOptions options_;
  bool is_stopping_ = false;
  runtime::Wakeup wakeup_;
  runtime::TaskGroup tasks_;
};

}  // namespace postrider::upkeep
