#include "postrider/http/client/response_headers.hpp"

#include <gtest/gtest.h>

namespace postrider::http {
namespace {

TEST(ResponseHeaders, AreKeptWithLowerCaseNames) {
  EXPECT_EQ(redacted_headers(
                "HTTP/1.1 301 Moved\r\nLocation: https://new.example/hooks\r\nRetry-After:  30 \r\n\r\n"),
            "location: https://new.example/hooks\nretry-after: 30\n");
}

TEST(ResponseHeaders, SecretsAreRedacted) {
  EXPECT_EQ(redacted_headers(
                "HTTP/1.1 401 No\nSet-Cookie: sid=abc\nX-Api-Key: 12\nWWW-Authenticate: Bearer realm=\"a\"\n"
                "Location: /in?token=s3cr3tvalue99\n\n"),
            "set-cookie: [redacted]\nx-api-key: [redacted]\nwww-authenticate: Bearer realm=\"a\"\n"
            "location: /in?token=[redacted]\n");
}

TEST(ResponseHeaders, BrokenLinesAreLeftOut) {
  EXPECT_EQ(redacted_headers(
                "HTTP/1.1 500\r\nno colon\r\n folded: yes\r\nbad name: x\r\n: y\r\nok: 1\r\n\r\nbody: 2"),
            "ok: 1\n");
}

TEST(ResponseHeaders, BytesThatAreNotTextCanBeStored) {
  const std::string stored = redacted_headers(std::string("HTTP/1.1 500\r\na: x\0\xff\x01y\r\n\r\n", 27));
  EXPECT_EQ(stored, "a: x\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdy\n");
}

TEST(ResponseHeaders, AreCapped) {
  std::string head = "HTTP/1.1 500\r\nlong: " + std::string(10'000, 'x') + "\r\n";
  for (int i = 0; i < 500; ++i) head += "name-" + std::to_string(i) + ": value of some length\r\n";
  const std::string stored = redacted_headers(head + "\r\n");
  EXPECT_LE(stored.size(), kStoredHeadersBytesMax);
  EXPECT_GT(stored.size(), kStoredHeadersBytesMax - 100);
  EXPECT_EQ(stored.find('\n'), std::string("long: ").size() + 512);
}

TEST(ResponseHeaders, ReadingJoinsValuesOfOneName) {
  const auto headers = read_headers("via: a\nage: 1\nvia: b\n");
  ASSERT_EQ(headers.size(), 2u);
  EXPECT_EQ(headers[0], (std::pair<std::string, std::string>{"via", "a, b"}));
  EXPECT_EQ(headers[1], (std::pair<std::string, std::string>{"age", "1"}));
}

}  // namespace
}  // namespace postrider::http
