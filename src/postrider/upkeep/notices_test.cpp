#include "postrider/upkeep/notices.hpp"

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
  made.url = "https://hooks.example.com/in";
  made.kind = std::move(kind);
  made.stage = 70;
  return made;
}

TEST(Notices, SayWhatHappenedAndWhatToDo) {
  const Mail warning = mail_of(notice("warning"));
  EXPECT_THAT(warning.subject, HasSubstr("ep_1"));
  EXPECT_THAT(warning.text,
              AllOf(HasSubstr("70 %"), HasSubstr("What to do"), HasSubstr("https://hooks.example.com/in")));
  Notice gone = notice("disabled");
  gone.detail = "the endpoint answered 410";
  EXPECT_THAT(mail_of(gone).text, AllOf(HasSubstr("answered 410"), HasSubstr("resume it")));
  EXPECT_THAT(json_of(notice("recovered")),
              AllOf(HasSubstr("\"type\":\"endpoint.recovered\""), Not(HasSubstr("percent"))));
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
