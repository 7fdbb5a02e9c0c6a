// Mail over SMTP: what the operator configured as smtp_url, so no guard. Blocks: call it on a thread of its
// own.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace postrider::upkeep {

struct Mail {
  std::string from, to, subject, text;  // the text has lines that end in \n
  // For the headers of RFC 8058: a POST to it unsubscribes. Empty: the mail is no notice.
  std::string unsubscribe_url = {};
};

struct MailServer {
  std::string url;      // smtps:// is TLS from the first byte; smtp:// uses STARTTLS where it is offered, and
                        // insists on it when there is a password
  std::string ca_file;  // additional certificate authorities; empty: none
};

// Nothing when the server took it; otherwise why not. A certificate that cannot be verified is a reason.
std::optional<std::string> send_mail(const MailServer& server, const Mail& mail,
                                     std::chrono::seconds timeout);

// As it goes over the wire. Line breaks in headers become spaces.
std::string mail_text(const Mail& mail, const std::string& date, const std::string& message_id);

}  // namespace postrider::upkeep
