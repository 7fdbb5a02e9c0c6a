#include "postrider/upkeep/mail_sender.hpp"

#include <thread>
#include <utility>

namespace postrider::upkeep {

runtime::Task<std::optional<std::string>> MailSender::send(Mail mail, std::chrono::seconds timeout) {
  if (!is_configured()) co_return "smtp_url is not set";
  mail.from = options_.from;
  runtime::OneShot<std::optional<std::string>> answer;
  std::thread sender([this, &mail, &answer, timeout] {
    auto trouble = send_mail(options_.server, mail, timeout);
    loop_.post([&answer, trouble = std::move(trouble)]() mutable { answer.set(std::move(trouble)); });
  });
  std::optional<std::string> trouble = co_await answer;
  sender.join();
  co_return trouble;
}

}  // namespace postrider::upkeep
