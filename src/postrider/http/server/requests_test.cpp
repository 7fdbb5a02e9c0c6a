// The server's behaviour towards a correct client.
#include <gtest/gtest.h>
#include <zlib.h>

#include "postrider/http/server/problem.hpp"
#include "postrider/http/server/testing.hpp"

namespace postrider::http {
namespace {

using runtime::Task;

// Echoes the request.
class Echo : public Handler {
 public:
  Task<Response> handle(Request& request) override {
    std::string text(method_name(request.method));
    text += ' ';
    text += request.path;
    for (const auto& [name, value] : request.query) text += " " + name + "=" + value;
    text += " [" + std::string(request.body) + "]";
    if (request.path == "/from") text = request.remote_address;
    if (request.path == "/throw") throw std::runtime_error("oh no");
    if (request.path == "/big") text = std::string(100'000, 'x');
    Response response = Response::text(200, std::move(text));
    if (request.path == "/injected") response.header("x-from-outside", "a\r\nx-forged: 1");
    co_return response;
  }
};

std::string post(std::string_view path, std::string_view body) {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(body);
}

std::string get(std::string_view target, std::string_view fields = "") {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: h\r\n" + std::string(fields) + "\r\n";
}

class ServerRequests : public testing::Test {
 protected:
  Echo echo_;
  TestServer server_{echo_};
  TestClient client_{server_.port()};

  std::string ask(std::string_view request) {
    client_.send(request);
    const auto answer = client_.receive();
    return answer ? answer->body : "closed";
  }
};

TEST_F(ServerRequests, KeepTheirConnection) {
  EXPECT_EQ(ask(post("/a", "one")), "POST /a [one]");
  EXPECT_EQ(ask(get("/b?x=1&y=a%20b+c&z")), "GET /b x=1 y=a b c z= []");
  EXPECT_EQ(server_.listener().connections(), 1u);
}

TEST_F(ServerRequests, ArePipelinedAndAnsweredInOrder) {
  std::string requests;
  for (int i = 0; i < 100; ++i) requests += post("/p", std::to_string(i));
  client_.send(requests);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(client_.receive()->body, "POST /p [" + std::to_string(i) + "]");
}

TEST_F(ServerRequests, GiveTheSameAnswerWhereverTheyAreSplit) {
  const std::string chunked =
      "POST /c?q=%41 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n00a;e;f=g;h=\"a\\\"\\\\;\"\r\n0123456789\r\n0\r\nX-Trailer: t\r\n\r\n";
  for (const std::string& request : {post("/whole", "body"), chunked}) {
    const std::string expected = ask(request);
    for (size_t split = 1; split < request.size(); ++split) {
      client_.send(std::string_view(request).substr(0, split));
      EXPECT_EQ(ask(std::string_view(request).substr(split)), expected) << "split at " << split;
    }
    for (const char byte : request) client_.send(std::string_view(&byte, 1));
    EXPECT_EQ(client_.receive()->body, expected) << "byte by byte";
  }
}

TEST_F(ServerRequests, MayHaveLargeBodies) {
  const std::string body(1 << 20, 'b');
  EXPECT_EQ(ask(post("/large", body)).size(), body.size() + 14);
  EXPECT_EQ(ask(post("/a", "still fine")), "POST /a [still fine]");
}

TEST_F(ServerRequests, AreToldToContinueWhenTheyAsk) {
  client_.send("POST /e HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client_.receive()->status, 100);
  EXPECT_EQ(ask("ok"), "POST /e [ok]");
}

TEST_F(ServerRequests, TooLargeAreNotToldToContinue) {
  client_.send("POST /e HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client_.receive()->status, 413);
}

TEST_F(ServerRequests, WithHeadGetNoBody) {
  client_.send("HEAD /x HTTP/1.1\r\nHost: h\r\n\r\n");
  const auto answer = client_.receive(true);
  EXPECT_EQ(answer->header("content-length"), "10");
  EXPECT_EQ(ask(get("/y")), "GET /y []");
}

TEST_F(ServerRequests, MayCloseTheirSendingSide) {
  client_.send(get("/1") + get("/2"));
  client_.send_eof();
  EXPECT_EQ(client_.receive()->body, "GET /1 []");
  EXPECT_EQ(client_.receive()->body, "GET /2 []");
  EXPECT_TRUE(client_.is_closed());
}

TEST_F(ServerRequests, CloseWhenTheySaySo) {
  client_.send(get("/x", "Connection: close\r\n"));
  EXPECT_EQ(client_.receive()->header("connection"), "close");
  EXPECT_TRUE(client_.is_closed());
}

TEST_F(ServerRequests, OfHttp10CloseUnlessTheyAskToStay) {
  client_.send("GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(client_.receive()->header("connection"), "keep-alive");
  client_.send("GET /x HTTP/1.0\r\n\r\n");
  EXPECT_EQ(client_.receive()->header("connection"), "close");
  EXPECT_TRUE(client_.is_closed());
}

TEST_F(ServerRequests, MayNameTheirHostInTheTarget) {
  EXPECT_EQ(ask("GET http://H/path?a=1 HTTP/1.1\r\nHost: h\r\n\r\n"), "GET /path a=1 []");
}

TEST_F(ServerRequests, MayFollowAnEmptyLine) {
  EXPECT_EQ(ask("\r\n" + get("/x")), "GET /x []");
}

TEST_F(ServerRequests, GetTheirOwnIds) {
  client_.send(get("/x") + get("/x"));
  const auto first = client_.receive()->header("x-request-id"),
             second = client_.receive()->header("x-request-id");
  EXPECT_TRUE(first->starts_with("req_"));
  EXPECT_EQ(first->size(), 20u);
  EXPECT_NE(first, second);
}

TEST_F(ServerRequests, WhoseHandlerThrowsGet503AndTheConnectionStays) {
  client_.send(get("/throw"));
  const auto answer = client_.receive();
  EXPECT_EQ(answer->status, 503);
  EXPECT_EQ(answer->header("content-type"), "application/problem+json");
  EXPECT_NE(answer->body.find(*answer->header("x-request-id")), std::string::npos);
  EXPECT_EQ(answer->body.find("oh no"), std::string::npos);
  EXPECT_EQ(ask(get("/y")), "GET /y []");
}

TEST_F(ServerRequests, CannotMakeAHandlerForgeHeaders) {
  client_.send(get("/injected"));
  const auto answer = client_.receive();
  EXPECT_EQ(answer->header("x-forged"), std::nullopt);
  EXPECT_EQ(answer->header("x-from-outside"), "a  x-forged: 1");
}

TEST_F(ServerRequests, GetLargeAnswersCompressedIfTheyAccept) {
  client_.send(get("/big", "Accept-Encoding: br, gzip;q=0.5\r\n"));
  const auto answer = client_.receive();
  ASSERT_EQ(answer->header("content-encoding"), "gzip");
  EXPECT_LT(answer->body.size(), 1000u);
  std::string plain(100'001, '\0');
  z_stream stream{};
  ASSERT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(answer->body.data()));
  stream.avail_in = static_cast<uInt>(answer->body.size());
  stream.next_out = reinterpret_cast<Bytef*>(plain.data());
  stream.avail_out = static_cast<uInt>(plain.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  inflateEnd(&stream);
  EXPECT_EQ(plain.substr(0, stream.total_out), std::string(100'000, 'x'));
}

TEST_F(ServerRequests, GetAnswersPlainIfTheyRefuseGzip) {
  EXPECT_EQ(ask(get("/big", "Accept-Encoding: gzip;q=0\r\n")).size(), 100'000u);
  EXPECT_EQ(ask(get("/big")).size(), 100'000u);
  EXPECT_EQ(ask(get("/x", "Accept-Encoding: gzip\r\n")), "GET /x []");
}

TEST_F(ServerRequests, FromAnUntrustedPeerCannotChooseTheirAddress) {
  EXPECT_EQ(ask(get("/from", "X-Forwarded-For: 8.8.8.8\r\n")), "127.0.0.1");
}

TEST(ServerBehindProxies, BelievesTheNearestAddressThatIsNotAProxy) {
  Echo echo;
  TestServer server(
      echo, {.trusted_proxies = {*base::Network::parse("127.0.0.1"), *base::Network::parse("10.0.0.0/8"),
                                 *base::Network::parse("fd00::/8")}});
  TestClient client(server.port());
  const auto from = [&](std::string_view forwarded) {
    client.send(get("/from", forwarded));
    return client.receive()->body;
  };
  EXPECT_EQ(from("X-Forwarded-For: 8.8.8.8\r\n"), "8.8.8.8");
  EXPECT_EQ(from("X-Forwarded-For: 1.1.1.1, 8.8.8.8, 10.1.2.3\r\n"), "8.8.8.8");
  EXPECT_EQ(from("X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: 2001:db8::1,fd00::5\r\n"), "2001:db8::1");
  EXPECT_EQ(from("X-Forwarded-For: 10.0.0.9\r\n"), "10.0.0.9");
  EXPECT_EQ(from("X-Forwarded-For: 8.8.8.8, junk, 10.0.0.1\r\n"), "10.0.0.1");
  EXPECT_EQ(from(""), "127.0.0.1");
}

}  // namespace
}  // namespace postrider::http
