// Mail over SMTP: what the operator configured as smtp_url, so no guard. Blocks: call it on a thread of its
// own.
#pragma once

#include <optional>
#include <string>

namespace postrider::upkeep {

struct Mail {
  std::string from, to, subject, text;  // the text has lines that end in \n
};

// Nothing when the server took it; otherwise why not. smtps:// is TLS from the first byte; smtp:// uses
// STARTTLS where the server offers it, and insists on it when there is a password.
std::optional<std::string> send_mail(const std::string& smtp_url, const Mail& mail);

// As it goes over the wire. Line breaks in headers become spaces.
std::string mail_text(const Mail& mail, const std::string& date, const std::string& message_id);

}  // namespace postrider::upkeep
