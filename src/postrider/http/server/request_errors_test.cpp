// A request that cannot be parsed safely is rejected at the first invalid byte. The client below sends up to
// that byte and no more, keeps its side open, and must get a response although the timeouts are minutes away.
#include <gtest/gtest.h>

#include "postrider/http/server/testing.hpp"

namespace postrider::http {
namespace {

using namespace std::string_literals;

class Fine : public Handler {
 public:
  size_t body_bytes_max(const Request& head) const override { return head.path == "/batch" ? 2000 : 0; }
  runtime::Task<Response> handle(Request& request) override {
    co_return Response::text(200, std::string(request.body));
  }
};

struct Bad {
  const char* name;
  std::string bytes;
  int status;
};

void PrintTo(const Bad& bad, std::ostream* out) {
  *out << bad.name;
}

std::string head(std::string_view fields) {
  return "POST /x HTTP/1.1\r\nHost: h\r\n" + std::string(fields);
}

std::string repeated(std::string_view text, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

const std::string kChunked = head("Transfer-Encoding: chunked\r\n\r\n");

const Bad kBadRequests[] = {
    // Not HTTP/1.1 at all.
    {"TlsClientHello", "\x16", 400},
    {"Nul", "\0"s, 400},
    {"HighByte", "\xff", 400},
    {"BareLineFeedFirst", "\n", 400},
    {"CarriageReturnThenNoise", "\rX", 400},
    {"TwoEmptyLines", "\r\n\r", 400},
    {"SpaceFirst", " ", 400},
    {"Json", "{", 400},
    {"QuotedMethod", "\"", 400},
    {"MethodWithColon", "GE:", 400},
    {"MethodWithTab", "GET\t", 400},
    {"MethodTooLong", std::string(33, 'A'), 400},
    {"MethodAlone", "GET\r", 400},
    {"Http2Preface", "PRI * HTTP/2", 400},
    {"SshBanner", "SSH-2.0-OpenSSH_9.2p1 D", 400},
    // The target.
    {"NoTarget", "GET  ", 400},
    {"RelativeTarget", "GET x", 400},
    {"QueryAsTarget", "GET ?", 400},
    {"Authority", "CONNECT e", 400},
    {"TargetWithControl", "GET /\x01", 400},
    {"TargetWithNul", "GET /\0"s, 400},
    {"TargetWithTab", "GET /\t", 400},
    {"TargetWithRawUtf8", "GET /\xc3", 400},
    {"TargetWithFragment", "GET /a#", 400},
    {"TargetWithQuote", "GET /a\"", 400},
    {"TargetWithAngle", "GET /<", 400},
    {"TargetWithBackslash", "GET /\\", 400},
    {"BrokenEscape", "GET /%4g", 400},
    {"EscapeCutOff", "GET /%4 ", 400},
    {"EscapedNul", "GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
    {"EscapedOverlong", "GET /%c0%af HTTP/1.1\r\nHost: h\r\n\r\n", 400},
    {"EscapedSurrogate", "GET /%ed%a0%80 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
    {"EscapedNulInQuery", "GET /?a=%00 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
    {"QueryNotUtf8", "GET /?%ff=1 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
    {"TargetTooLong", "GET /" + std::string(8192, 'a'), 414},
    {"StarForGet", "GET * HTTP/1.1\r\nHost: h\r\n\r\n", 400},
    {"OtherScheme", "GET hxxp://h/ HTTP/1.1\r\nHost: h\r\n\r\n", 400},
    {"OtherHostInTarget", "GET http://other/ HTTP/1.1\r\nHost: h\r\n\r\n", 400},
    {"UserInTarget", "GET http://u@h/ HTTP/1.1\r\nHost: h\r\n\r\n", 400},
    // The version.
    {"NoVersion", "GET /\r", 400},
    {"TwoSpaces", "GET /  ", 400},
    {"LowerCaseVersion", "GET / h", 400},
    {"Version0", "GET / HTTP/0", 400},
    {"Version2", "GET / HTTP/2", 400},
    {"Version12", "GET / HTTP/1.2", 400},
    {"Version111", "GET / HTTP/1.11", 400},
    {"SpaceAfterVersion", "GET / HTTP/1.1 ", 400},
    {"RequestLineWithBareLineFeed", "GET / HTTP/1.1\n", 400},
    {"RequestLineWithBareReturn", "GET / HTTP/1.1\rH", 400},
    // Header fields.
    {"SpaceBeforeColon", "GET / HTTP/1.1\r\nHost ", 400},
    {"TabBeforeColon", "GET / HTTP/1.1\r\nHost\t", 400},
    {"FieldWithoutColon", "GET / HTTP/1.1\r\nHost\r", 400},
    {"EmptyName", "GET / HTTP/1.1\r\n:", 400},
    {"FoldedWithSpace", head("A: b\r\n "), 400},
    {"FoldedWithTab", head("A: b\r\n\t"), 400},
    {"FirstFieldFolded", "GET / HTTP/1.1\r\n ", 400},
    {"NameWithControl", head("A\x02"), 400},
    {"NameWithUtf8", head("\xc3"), 400},
    {"NameWithSlash", head("A/"), 400},
    {"ValueWithNul", head("A: \0"s), 400},
    {"ValueWithDelete", head("A: \x7f"), 400},
    {"ValueWithBareLineFeed", head("A: b\n"), 400},
    {"ValueWithBareReturn", head("A: b\rC"), 400},
    {"HeadEndsInBareLineFeed", head("\n"), 400},
    {"HeadEndsInReturnOnly", head("\rX"), 400},
    {"NoHost", "GET / HTTP/1.1\r\n\r\n", 400},
    {"EmptyHost", "GET / HTTP/1.1\r\nHost:\r\n", 400},
    {"TwoHosts", head("Host: h\r\n"), 400},
    {"HostWithSlash", "GET / HTTP/1.1\r\nHost: a/b\r\n", 400},
    {"HostWithUser", "GET / HTTP/1.1\r\nHost: u@h\r\n", 400},
    {"HostList", "GET / HTTP/1.1\r\nHost: a, b\r\n", 400},
    {"TwoTypes", head("Content-Type: text/plain\r\nContent-Type: application/json\r\n"), 400},
    {"TwoEqualTypes", head("Content-Type: a/b\r\ncontent-type: a/b\r\n"), 400},
    {"ConnectionNotTokens", head("Connection: a b\r\n"), 400},
    {"UnknownExpectation", head("Expect: miracles\r\n"), 417},
    {"HeadTooLarge", head("A: " + std::string(16384, 'a')).substr(0, 16385), 431},
    {"HeadTooLargeInSum", head(repeated("A: " + std::string(1000, 'a') + "\r\n", 17)).substr(0, 16385), 431},
    {"TooManyFields", head(repeated("A: b\r\n", 99) + "A"), 431},
    // The framing of the body.
    {"TwoLengths", head("Content-Length: 3\r\nContent-Length: 4\r\n"), 400},
    {"TwoEqualLengths", head("Content-Length: 3\r\nContent-Length: 3\r\n"), 400},
    {"LengthList", head("Content-Length: 3, 3\r\n"), 400},
    {"LengthWithPlus", head("Content-Length: +3\r\n"), 400},
    {"NegativeLength", head("Content-Length: -3\r\n"), 400},
    {"HexLength", head("Content-Length: 0x3\r\n"), 400},
    {"LengthWithNoise", head("Content-Length: 3a\r\n"), 400},
    {"EmptyLength", head("Content-Length:\r\n"), 400},
    {"OverflowingLength", head("Content-Length: 99999999999999999999\r\n"), 400},
    {"LengthThenChunked", head("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"), 400},
    {"ChunkedThenLength", head("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"), 400},
    {"UnknownCoding", head("Transfer-Encoding: xchunked\r\n"), 400},
    {"GzipCoding", head("Transfer-Encoding: gzip, chunked\r\n"), 400},
    {"ChunkedTwice", head("Transfer-Encoding: chunked, chunked\r\n"), 400},
    {"ChunkedNotLast", head("Transfer-Encoding: chunked, identity\r\n"), 400},
    {"Identity", head("Transfer-Encoding: identity\r\n"), 400},
    {"TwoCodings", head("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400},
    {"VerticalTabInCoding", head("Transfer-Encoding: \x0b"), 400},
    {"ChunkedInHttp10", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n", 400},
    {"LengthTooLarge", head("Content-Length: 1001\r\n\r\n"), 413},
    {"LengthTooLargeForItsPath", "POST /batch HTTP/1.1\r\nHost: h\r\nContent-Length: 2001\r\n\r\n", 413},
    {"ChunkSizeNotHex", kChunked + "x", 400},
    {"ChunkSizeEmpty", kChunked + "\r", 400},
    {"ChunkSizeNegative", kChunked + "-", 400},
    {"ChunkSizeWithSpace", kChunked + "3 ", 400},
    {"ChunkSizeWithPrefix", kChunked + "0x", 400},
    {"ChunkSizeWithBareLineFeed", kChunked + "3\n", 400},
    {"ChunkSizeWithBareReturn", kChunked + "3\rX", 400},
    {"ChunkSizeOfZeros", kChunked + std::string(17, '0'), 400},
    {"ChunkTooLarge", kChunked + "3e9", 413},
    {"ChunkFarTooLarge", kChunked + "fff", 413},
    {"ChunksTooLargeInSum", kChunked + "3e8\r\n" + std::string(1000, 'a') + "\r\n1", 413},
    {"ChunkLongerThanItsSize", kChunked + "3\r\nabcd", 400},
    {"ChunkWithoutLineFeed", kChunked + "3\r\nabc\rX", 400},
    {"ChunkExtensionWithControl", kChunked + "3;a=\x01", 400},
    {"ChunkExtensionWithoutName", kChunked + "3;=", 400},
    {"ChunkExtensionWithoutValue", kChunked + "3;a=\r", 400},
    {"ChunkExtensionWithSpace", kChunked + "3;a ", 400},
    {"ChunkExtensionQuotedOverLineEnd", kChunked + "3;a=\"b\r", 400},
    {"ChunkExtensionWithNoiseBehindQuote", kChunked + "3;a=\"b\"c", 400},
    {"ChunkExtensionTooLarge", kChunked + "3;" + std::string(16385, 'a'), 431},
    {"TrailerWithSpaceBeforeColon", kChunked + "0\r\nA ", 400},
    {"TrailerFolded", kChunked + "0\r\nA: b\r\n ", 400},
    {"TrailerWithBareLineFeed", kChunked + "0\r\nA: b\n", 400},
    {"TrailerTooLarge", kChunked + "0\r\nA: " + std::string(16383, 'a'), 431},
    {"TrailerEndWithNoise", kChunked + "0\r\n\rX", 400},
};

class RequestErrors : public testing::TestWithParam<Bad> {
 protected:
  static void SetUpTestSuite() {
    const std::chrono::milliseconds far = std::chrono::minutes(10);
    handler_ = new Fine;
    server_ = new TestServer(*handler_, {.body_bytes_max = 1000,
                                         .head_timeout = far,
                                         .body_timeout = far,
                                         .linger_timeout = std::chrono::milliseconds(50)});
  }
  static void TearDownTestSuite() {
    delete server_;
    delete handler_;
  }
  static inline Fine* handler_ = nullptr;
  static inline TestServer* server_ = nullptr;
};

TEST_P(RequestErrors, ComeAtTheFirstByteThatCannotBecomeValid) {
  const Bad& bad = GetParam();
  TestClient client(server_->port());
  client.send(bad.bytes);
  const auto answer = client.receive();
  ASSERT_TRUE(answer) << "no answer";
  EXPECT_EQ(answer->status, bad.status) << answer->body;
  EXPECT_EQ(answer->header("connection"), "close");
  EXPECT_EQ(answer->header("content-type"), "application/problem+json");
  EXPECT_TRUE(client.is_closed());
}

// The other half of "first": without its last byte, each of them could still become a request.
TEST_P(RequestErrors, DoNotComeBefore) {
  const Bad& bad = GetParam();
  TestClient client(server_->port());
  client.send(std::string_view(bad.bytes).substr(0, bad.bytes.size() - 1));
  client.send_eof();
  EXPECT_EQ(client.receive_until_closed(), "");
}

INSTANTIATE_TEST_SUITE_P(Server, RequestErrors, testing::ValuesIn(kBadRequests),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(RequestError, OfAPipelinedRequestComesAfterTheAnswersBeforeIt) {
  Fine fine;
  TestServer server(fine);
  TestClient client(server.port());
  client.send("GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\nnoise\r\n");
  EXPECT_EQ(client.receive()->status, 200);
  EXPECT_EQ(client.receive()->status, 200);
  EXPECT_EQ(client.receive()->status, 400);
  EXPECT_TRUE(client.is_closed());
}

TEST(RequestError, OfALargeBodyReachesAClientThatGoesOnSending) {
  Fine fine;
  TestServer server(fine, {.body_bytes_max = 1000});
  TestClient client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n" + std::string(100000, 'a'));
  EXPECT_EQ(client.receive()->status, 413);
}

TEST(RequestError, ComesWhenBodiesFillTheMemoryTheyMayHave) {
  Fine fine;
  TestServer server(fine, {}, {.unauthenticated_body_bytes_max = 200'000});
  TestClient first(server.port()), second(server.port());
  const std::string request = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 90000\r\n\r\n";
  first.send(request + std::string(80'000, 'a'));
  second.send(request + std::string(80'000, 'a'));
  // The one that crosses the limit is rejected; the other one can be completed.
  TestClient* rejected = &second;
  first.send(std::string(10'000, 'a'));
  auto answer = first.receive();
  ASSERT_TRUE(answer);
  if (answer->status == 503) {
    rejected = &first;
    second.send(std::string(10'000, 'a'));
    EXPECT_EQ(second.receive()->status, 200);
  } else {
    EXPECT_EQ(answer->status, 200);
    answer = rejected->receive();
  }
  EXPECT_EQ(answer->status, 503);
  EXPECT_EQ(answer->header("retry-after"), "1");
}

}  // namespace
}  // namespace postrider::http
