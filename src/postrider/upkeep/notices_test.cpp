#include "postrider/upkeep/notice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postrider::upkeep {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Notice notice(std::string kind) {
  Notice made;
  made.tenant = "acme";
  made.endpoint = "ep_1";
  made.host = "hooks.example.com";
  made.kind = std::move(kind);
  made.stage = 70;
  return made;
}

TEST(Notices, SayWhatHappenedAndWhatToDo) {
  const std::string unsubscribe = "https://postrider.example/contacts/unsubscribe/token";
  const Mail warning = mail_of(notice("warning"), unsubscribe);
  EXPECT_THAT(warning.subject, HasSubstr("ep_1"));
  EXPECT_THAT(warning.text, AllOf(HasSubstr("70 %"), HasSubstr("What to do"),
                                  HasSubstr("Host: hooks.example.com\n"), HasSubstr(unsubscribe)));
  Notice gone = notice("disabled");
  gone.cause = "gone";
  EXPECT_THAT(mail_of(gone, unsubscribe).text, AllOf(HasSubstr("410"), HasSubstr("resume it")));
  EXPECT_THAT(json_of(notice("recovered")),
              AllOf(HasSubstr("\"type\":\"endpoint.recovered\""), Not(HasSubstr("percent"))));
}

TEST(Mail, OfANoticeCanBeUnsubscribedByOneClick) {
  const std::string text = mail_text({.from = "a@b",
                                      .to = "c@d",
                                      .subject = "x",
                                      .text = "",
                                      .unsubscribe_url = "https://postrider.example/u/1"},
                                     "Thu, 01 Jan 2026 00:00:00 +0000", "id");
  EXPECT_THAT(text, AllOf(HasSubstr("\r\nList-Unsubscribe: <https://postrider.example/u/1>\r\n"),
                          HasSubstr("\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n")));
}

TEST(Mail, CannotBeGivenMoreHeadersOrRecipientsByALineBreak) {
  const std::string text =
      mail_text({.from = "a@b", .to = "c@d\r\nBcc: e@f", .subject = "x\ny", .text = "one\ntwo\n"},
                "Thu, 01 Jan 2026 00:00:00 +0000", "id");
  EXPECT_THAT(text, AllOf(HasSubstr("To: c@d  Bcc: e@f\r\n"), HasSubstr("Subject: x y\r\n"),
                          HasSubstr("\r\n\r\none\r\ntwo\r\n")));
}

}  // namespace
}  // namespace postrider::upkeep
