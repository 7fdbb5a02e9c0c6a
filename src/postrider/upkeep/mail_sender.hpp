// Sends mail from a loop: libcurl blocks, so every mail has a thread while it is sent.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"
#include "postrider/upkeep/mail.hpp"

namespace postrider::upkeep {

class MailSender {
 public:
  struct Options {
    MailServer server;  // without a URL there is no mail
    std::string from;
    std::string public_url;  // links in mails begin with it
  };
  MailSender(runtime::Loop& loop, Options options) : loop_(loop), options_(std::move(options)) {}

  bool is_configured() const { return !options_.server.url.empty(); }
  // The address of a page of this server.
  std::string link_to(const std::string& path) const { return options_.public_url + path; }

  // Fills in the sender. Nothing when the server took the mail; otherwise why not. Outlives the task.
  runtime::Task<std::optional<std::string>> send(Mail mail, std::chrono::seconds timeout);

 private:
  runtime::Loop& loop_;
  Options options_;
};

}  // namespace postrider::upkeep
