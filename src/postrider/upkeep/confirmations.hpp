// Sends confirmation mails to addresses on tenants' lists of contacts. Requests are in the table
// contact_request; the mail has a link to a page with a button and no text that a customer wrote.
#pragma once

#include "postrider/pg/link.hpp"
#include "postrider/runtime/service.hpp"
#include "postrider/upkeep/mail_sender.hpp"
#include "postrider/upkeep/metrics.hpp"

namespace postrider::upkeep {

struct ConfirmationOptions {
  int per_tenant = 20;  // mails a day
  int per_address = 3;  // mails a day to one mailbox, over all tenants; three times that in 30 days

  void validate() const;
};

Mail confirmation_mail(const std::string& url);

class Confirmations : public runtime::Service {
 public:
  // All of them outlive it.
  Confirmations(runtime::Loop& loop, pg::Link& link, MailSender& mails, const telemetry::Metrics& metrics,
                ConfirmationOptions options);

  runtime::Task<bool> send_one();  // false: none is due. Throws pg::Error

 private:
  // Does nothing without a mail server: requests wait until there is one.
  runtime::Task<runtime::SteadyTime> pass(runtime::SteadyTime now) override;

  pg::Link& link_;
  MailSender& mails_;
  Metrics metrics_;
  ConfirmationOptions options_;
};

}  // namespace postrider::upkeep
