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

TEST(Notices, OfEachKindHaveTheNumbersAndWhatToDo) {
  Notice failing = notice("failing");
  failing.attempts = failing.failed = 5;
  failing.failing_since = base::parse_rfc3339("2026-04-08T10:15:30Z");
  EXPECT_THAT(mail_of(failing, "").text,
              AllOf(HasSubstr("All 5 delivery attempts since 2026-04-08T10:15:30Z"), HasSubstr("have failed"),
                    HasSubstr("What to do")));
  EXPECT_THAT(json_of(failing), AllOf(HasSubstr("\"type\":\"endpoint.failing\""), HasSubstr("\"failed\":5"),
                                      Not(HasSubstr("percent"))));
  Notice degraded = notice("degraded");
  degraded.attempts = 120;
  degraded.failed = 40;
  EXPECT_THAT(mail_of(degraded, "").subject, HasSubstr("failing in part"));
  EXPECT_THAT(json_of(degraded), AllOf(HasSubstr("About 40 of 120 delivery attempts in the last hour failed"),
                                       HasSubstr("\"attempts\":120,\"failed\":40"), HasSubstr("What to do")));
  EXPECT_THAT(mail_of(notice("paused"), "").text, AllOf(HasSubstr("paused"), HasSubstr("resume it")));
}

TEST(Notices, AboutDeadLettersNameTheirEndpointsButNoPaths) {
  Notice digest;
  digest.tenant = "acme";
  digest.kind = "dead_letters";
  digest.dead_letters = read_dead_letters(
      R"({"dead_letters": 12, "since": "2026-04-08T10:15:00+00:00", "endpoint_count": 3, "endpoints": [
          {"endpoint_id": "ep_1", "url": "https://hooks.example.com/secret", "dead_letters": 10,
           "causes": {"rejected": 8, "exhausted": 2}},
          {"endpoint_id": "ep_2", "url": "https://b.example/", "dead_letters": 1, "causes": {"expired": 1}}]})");
  const Mail mail = mail_of(digest, "");
  EXPECT_THAT(mail.subject, HasSubstr("12"));
  EXPECT_THAT(mail.text,
              AllOf(HasSubstr("Since 2026-04-08T10:15:00Z, 12 deliveries to 3 endpoints"),
                    HasSubstr("ep_1 (hooks.example.com): 10 (exhausted 2, rejected 8)\n"),
                    HasSubstr("and 1 more endpoint\n"), HasSubstr("replay"), Not(HasSubstr("secret"))));
  EXPECT_THAT(json_of(digest),
              AllOf(HasSubstr("\"type\":\"delivery.dead_lettered\""),
                    HasSubstr("\"causes\":{\"exhausted\":2,\"rejected\":8}"), Not(HasSubstr("secret"))));
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
