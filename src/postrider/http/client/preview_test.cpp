#include "postrider/http/client/preview.hpp"

#include <gtest/gtest.h>

namespace postrider::http {
namespace {

std::string preview(std::string_view raw) {
  return redacted_preview(raw, true);
}

TEST(Preview, KeepsWhatASupportPersonNeeds) {
  for (const std::string text : {R"({"error":"invoice 1234 not found","request_id":"req_8c1d5f0e4b"})",
                                 "invalid token: expired", "<html>\n\t<b>502 Bad Gateway</b>\n</html>",
                                 "at 1767225600000 ms, trace 4bf92f3577b34da6a3ce929d0e0e4736",
                                 "Größe überschritten: 日本", "key: value", "order 4111111111111112 failed"})
    EXPECT_EQ(preview(text), text);
}

struct SecretCase {
  const char* text;
  const char* expected;
};

class PreviewSecrets : public testing::TestWithParam<SecretCase> {};

TEST_P(PreviewSecrets, AreRedacted) {
  EXPECT_EQ(preview(GetParam().text), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    All, PreviewSecrets,
    testing::Values(
        SecretCase{"Authorization: Bearer abcdef123456", "Authorization: Bearer [redacted]"},
        SecretCase{"authorization: basic dXNlcjpwYXNz", "authorization: basic [redacted]"},
        SecretCase{"got whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw!", "got [redacted]!"},
        SecretCase{"key sk_live_4eC39HqLyjWDarjtT1zdp7dc.", "key [redacted]"},
        SecretCase{"ghp_16C7e42F292c6912E7710c838347Ae178B4a", "[redacted]"},
        SecretCase{"AKIAIOSFODNN7EXAMPLE", "[redacted]"},
        SecretCase{"jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sflKxwRJSMeKKF2QT4", "jwt [redacted]"},
        SecretCase{R"({"password":"x","user":"u"})", R"({"password":"[redacted]","user":"u"})"},
        SecretCase{R"({"client_secret": "s3cr3t value"})", R"({"client_secret": "[redacted]"})"},
        SecretCase{R"({"passphrase":"one, two & {three}","id":7})", R"({"passphrase":"[redacted]","id":7})"},
        SecretCase{R"({"password":"say \"hi\" twice","id":7})", R"({"password":"[redacted]","id":7})"},
        SecretCase{R"("{\"password\":\"one \\\"two\\\" three\",\"id\":7}")",
                   R"("{\"password\":\"[redacted]\",\"id\":7}")"},
        SecretCase{R"(""password"": ""hunter2"")", R"(""password"": ""[redacted]"")"},
        SecretCase{R"(password=\abc)", R"(password=\[redacted])"},
        SecretCase{R"({"api_key":"\/ab12cd34"})", R"({"api_key":"\[redacted]"})"},
        SecretCase{R"({"password":"","hint":"a word"})", R"({"password":"","hint":"a word"})"},
        SecretCase{R"({"password":"cut off in the)", R"({"password":"[redacted])"},
        SecretCase{"password = 'two words', then", "password = '[redacted]', then"},
        SecretCase{R"({"accessToken":"0123456789abcdef"})", R"({"accessToken":"[redacted]"})"},
        SecretCase{"?api_key=abcdef0123456789&x=1", "?api_key=[redacted]&x=1"},
        SecretCase{R"({\"token\":\"0123456789abcdef\"})", R"({\"token\":\"[redacted]\"})"},
        SecretCase{"set-cookie: sid4711=abc; path=/", "set-cookie: [redacted]; path=/"},
        SecretCase{"card 4111111111111111 declined", "card [redacted] declined"},
        SecretCase{"card 4111 1111 1111 1111, cvc", "card [redacted], cvc"},
        SecretCase{"5500-0000-0000-0004", "[redacted]"},
        SecretCase{"4111111111111111 12/27", "[redacted] 12/27"},
        SecretCase{"4111 1111 1111 1111 123", "[redacted] 123"},
        SecretCase{"card_4111111111111111", "card_[redacted]"},
        SecretCase{"amex 378282246310005.", "amex [redacted]."},
        SecretCase{"postgres://app:hunter2@db/x", "postgres://[redacted]@db/x"},
        SecretCase{"a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb",
                   "a\n[redacted]\nb"},
        SecretCase{"-----BEGIN PRIVATE KEY-----\nMIIE", "[redacted]"}));

TEST(Preview, IsValidUtf8WithoutControlCharacters) {
  EXPECT_EQ(preview(std::string("a\0b\x1b[31m\r\n\xff\xc3", 12)),
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd[31m\n\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(preview("\xed\xa0\x80"),
            "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");  // a surrogate is not a character
}

TEST(Preview, IsCappedAtACharacter) {
  std::string text = "x";
  for (int i = 0; i < 1000; ++i) text += "\xc3\xbc";
  const std::string capped = preview(text);
  EXPECT_EQ(capped.size(), 1023u);
  EXPECT_EQ(capped.substr(capped.size() - 2), "\xc3\xbc");
}

TEST(Preview, OfACutBodyHidesTheStartOfACardAndHalfACharacter) {
  EXPECT_EQ(redacted_preview("card 4111 1111 11", false), "card [redacted]");
  EXPECT_EQ(redacted_preview("card 4111 1111 11", true), "card 4111 1111 11");
  EXPECT_EQ(redacted_preview("abc\xe6\x97", false), "abc");
}

TEST(Preview, OfHostileBytesEnds) {
  for (const char c : std::string("4:=\"\\- b\xff@"))
    EXPECT_LE(preview(std::string(5000, c)).size(), 1024u) << c;
}

}  // namespace
}  // namespace postrider::http
