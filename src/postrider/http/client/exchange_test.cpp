// The results of plain exchanges with well-behaved and misbehaving endpoints.
#include "postrider/http/client/testing.hpp"

namespace postrider::http {
namespace {

class ClientExchange : public ClientTest {};

TEST_F(ClientExchange, SendsOneRequestAndReadsItsAnswer) {
  std::string seen;
  ScriptedServer server([&](Peer& peer) {
    seen = peer.read_request();
    peer.write(kOkResponse);
    peer.wait_until_closed();
  });
  const Exchange exchange = fetch(server.url("/hook?a=1"), 20s, R"({"n":1})");
  EXPECT_EQ(status_of(exchange), 200);
  EXPECT_EQ(exchange.answer()->body_start, "ok");
  EXPECT_TRUE(exchange.answer()->is_complete);
  EXPECT_EQ(exchange.remote->to_string(), "127.0.0.1");
  EXPECT_GT(exchange.times.total.count(), 0);
  EXPECT_EQ(seen, "POST /hook?a=1 HTTP/1.1\r\nhost: 127.0.0.1:" + std::to_string(server.port()) +
                      "\r\ncontent-type: application/json\r\ncontent-length: 7\r\n\r\n{\"n\":1}");
}

struct ResponseCase {
  const char* name;
  std::string bytes;
  int status;
  std::string body;
  bool is_complete;
};

class ClientResponses : public ClientTest, public testing::WithParamInterface<ResponseCase> {};

TEST_P(ClientResponses, AreUnderstood) {
  ScriptedServer server(once(GetParam().bytes));
  const Exchange exchange = fetch(server.url());
  ASSERT_EQ(status_of(exchange), GetParam().status);
  EXPECT_EQ(exchange.answer()->body_start, GetParam().body);
  EXPECT_EQ(exchange.answer()->is_complete, GetParam().is_complete);
}

INSTANTIATE_TEST_SUITE_P(
    All, ClientResponses,
    testing::Values(
        ResponseCase{"NoReasonPhrase", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhi", 200, "hi", true},
        ResponseCase{"BareLineFeeds", "HTTP/1.1 201 Created\nContent-Length: 2\n\nhi", 201, "hi", true},
        ResponseCase{"SpaceBeforeColon", "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nhi", 200, "hi", true},
        ResponseCase{"Http10UntilClose", "HTTP/1.0 200 OK\r\n\r\nall of it", 200, "all of it", true},
        ResponseCase{
            "Chunked",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n",
            200, "hello world", true},
        ResponseCase{
            "ChunkedWithTrailers",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 1\r\nY: 2\r\n\r\n",
            200, "hi", true},
        ResponseCase{"ContinueAndEarlyHintsBefore",
                     "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
                     "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
                     200, "hi", true},
        ResponseCase{"CompressedBodyIsPassedThrough",
                     std::string("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n") +
                         std::string("\x1f\x8b\x08\x00", 4),
                     200, std::string("\x1f\x8b\x08\x00", 4), true},
        ResponseCase{"RedirectIsNotFollowed",
                     "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", 302,
                     "", true},
        ResponseCase{"CutInTheBodyIsStillAnAnswer", "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhal", 200,
                     "hal", false},
        ResponseCase{"BadChunkIsStillAnAnswer", "HTTP/1.1 202 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                     202, "", false},
        ResponseCase{"FoldedAndBrokenLinesAreSkipped",
                     "HTTP/1.1 200 OK\r\nX: a\r\n  folded\r\nno colon here\r\nContent-Length: 2\r\n\r\nhi",
                     200, "hi", true},
        ResponseCase{"NoContent", "HTTP/1.1 204 No Content\r\n\r\n", 204, "", true}),
    [](const auto& tested) { return tested.param.name; });

TEST_F(ClientExchange, KeepsRetryAfterAndContentTypeRaw) {
  ScriptedServer server(once(
      "HTTP/1.1 503 Busy\r\nRETRY-AFTER:  120 \r\ncontent-type: text/plain\r\nContent-Length: 0\r\n\r\n"));
  const Exchange exchange = fetch(server.url());
  EXPECT_EQ(status_of(exchange), 503);
  EXPECT_EQ(exchange.answer()->retry_after, "120");
  EXPECT_EQ(exchange.answer()->content_type, "text/plain");
}

TEST_F(ClientExchange, AnEndlessBodyIsReadUpToTheCapAndCounts) {
  ScriptedServer server([](Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\n\r\n");
    while (peer.write(std::string(10'000, 'x'))) {
    }
  });
  const Exchange exchange = fetch(server.url());
  EXPECT_EQ(status_of(exchange), 200);
  EXPECT_FALSE(exchange.answer()->is_complete);
  EXPECT_EQ(exchange.answer()->body_start.size(), kResponsePreviewBytesMax);
  EXPECT_LE(exchange.answer()->body_bytes, 64 * 1024 + 64 * 1024u);
}

TEST_F(ClientExchange, AStalledBodyBehindAGoodHeadCountsAndFreesTheSlotEarly) {
  make_client({.body_wait_max = 50ms});
  ScriptedServer server([](Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc");
    peer.hang();
  });
  const Exchange exchange = fetch(server.url(), 1h);  // the deadline is not what ends it
  EXPECT_EQ(status_of(exchange), 200);
  EXPECT_FALSE(exchange.answer()->is_complete);
  EXPECT_EQ(exchange.answer()->body_start, "abc");
  EXPECT_EQ(client_->stats().idle, 0u);
}

TEST_F(ClientExchange, AnEarlyAnswerToALargeUnreadBodyIsTaken) {
  ScriptedServer server([](Peer& peer) {
    peer.write("HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    peer.hang();
  });
  const Exchange exchange = fetch(server.url(), 20s, std::string(8'000'000, 'x'));
  EXPECT_EQ(status_of(exchange), 413);
  EXPECT_EQ(client_->stats().idle, 0u);
}

TEST_F(ClientExchange, ALargeBodyArrivesWhole) {
  const std::string body(5'000'000, 'b');
  std::atomic<size_t> seen = 0;
  ScriptedServer server([&](Peer& peer) {
    seen = peer.read_request().size();
    peer.write(kOkResponse);
  });
  EXPECT_EQ(status_of(fetch(server.url(), 20s, body)), 200);
  EXPECT_GT(seen.load(), body.size());
}

struct FailureCase {
  const char* name;
  ScriptedServer::Script script;
  std::string error;
};

const FailureCase failure_cases[] = {
    FailureCase{"HangsBeforeTheAnswer",
                [](Peer& peer) {
                  peer.read_request();
                  peer.hang();
                },
                "timeout_first_byte"},
    FailureCase{"NeverReads", [](Peer& peer) { peer.hang(); }, "timeout_send"},
    FailureCase{"StallsInTheHead",
                [](Peer& peer) {
                  peer.read_request();
                  peer.write("HTTP/1.1 200 OK\r\nX-");
                  peer.hang();
                },
                "timeout_response"},
    FailureCase{"TricklesTheHead",
                [](Peer& peer) {
                  peer.read_request();
                  peer.write("HTTP/1.1 200 OK\r\n");
                  pollfd nothing{peer.descriptor(), 0, 0};
                  while (peer.write("x")) poll(&nothing, 1, 5);
                },
                "timeout_response"},
    FailureCase{"ClosesWithoutAnAnswer", [](Peer& peer) { peer.read_request(); }, "connection_closed"},
    FailureCase{"ClosesInTheHead",
                [](Peer& peer) {
                  peer.read_request();
                  peer.write("HTTP/1.1 200 OK\r\nContent-");
                },
                "connection_closed"},
    FailureCase{"Resets",
                [](Peer& peer) {
                  peer.read_request();
                  peer.reset();
                },
                "connection_reset"},
    FailureCase{"SendsAHugeHead",
                [](Peer& peer) {
                  peer.read_request();
                  peer.write("HTTP/1.1 200 OK\r\n");
                  while (peer.write("X-Filler: " + std::string(1000, 'x') + "\r\n")) {
                  }
                },
                "head_too_large"},
    FailureCase{"SpeaksSomethingElse", once("220 mail.example ESMTP\r\n"), "not_http"},
    FailureCase{"SpeaksHttp2", once(std::string("\0\0\x12\x04\0\0\0\0\0", 9)), "not_http"},
    FailureCase{"HasNoStatus", once("HTTP/1.1 OK\r\n\r\n"), "not_http"},
    FailureCase{"ContinuesForEver",
                [](Peer& peer) {
                  peer.read_request();
                  while (peer.write("HTTP/1.1 100 Continue\r\n\r\n")) {
                  }
                },
                "not_http"}};

// All at once, so that one deadline long enough for a busy machine serves them all.
TEST_F(ClientExchange, FailuresAreToldApart) {
  const std::string small = "{}";
  const std::string large(4'000'000, 'x');  // more than the system takes for a peer that never reads
  std::vector<std::unique_ptr<ScriptedServer>> servers;
  std::vector<Url> urls;
  for (const FailureCase& tested : failure_cases) {
    servers.push_back(std::make_unique<ScriptedServer>(tested.script));
    urls.push_back(*parse_url(servers.back()->url()));
  }
  std::vector<Exchange> exchanges(std::size(failure_cases));
  runtime::TaskGroup group;
  for (size_t i = 0; i < exchanges.size(); ++i)
    group.spawn(
        fetch_one(urls[i], 5s, failure_cases[i].error == "timeout_send" ? large : small, exchanges[i]));
  run_until_done(group);
  for (size_t i = 0; i < exchanges.size(); ++i) {
    EXPECT_EQ(error_of(exchanges[i]), failure_cases[i].error) << failure_cases[i].name;
    EXPECT_FALSE(exchanges[i].failure() != nullptr && exchanges[i].failure()->detail.empty());
  }
  EXPECT_EQ(client_->stats().idle, 0u);
}

TEST_F(ClientExchange, ARefusedConnectionIsOne) {
  std::string url;
  {
    ScriptedServer gone(always(""));
    url = gone.url();
  }
  EXPECT_EQ(error_of(fetch(url)), "connection_refused");
}

TEST_F(ClientExchange, ADeadlineInThePastFailsWithoutWaiting) {
  ScriptedServer server([](Peer& peer) { peer.hang(); });
  EXPECT_EQ(error_of(fetch(server.url(), -1s)).substr(0, 7), "timeout");
}

TEST_F(ClientExchange, BlockedDestinationsNeverGetAConnection) {
  use_policy({.allow_http = true});
  ScriptedServer server(always(std::string(kOkResponse)));
  for (const std::string host : {"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"}) {
    const Exchange exchange = fetch(server.url("/", host));
    EXPECT_EQ(error_of(exchange), "blocked") << host;
    EXPECT_TRUE(exchange.failure()->blocked_reason.has_value());
  }
  EXPECT_EQ(server.accepted(), 0);
}

TEST_F(ClientExchange, LocalhostWorksWhereItsAddressesAreAllowed) {
  ScriptedServer server(always(std::string(kOkResponse)));
  EXPECT_EQ(status_of(fetch(server.url("/", "localhost"))), 200);
}

TEST_F(ClientExchange, WorksOverIpv6) {
  ScriptedServer server(always(std::string(kOkResponse)), "::1");
  EXPECT_EQ(status_of(fetch(server.url("/", "[::1]"))), 200);
}

TEST_F(ClientExchange, TheSourceAddressCanBeChosen) {
  make_client({.bind_address = IpAddress::parse("127.0.0.9")});
  std::string source;
  ScriptedServer server([&](Peer& peer) {
    peer.read_request();
    sockaddr_in name{};
    socklen_t size = sizeof name;
    getpeername(peer.descriptor(), reinterpret_cast<sockaddr*>(&name), &size);
    source = IpAddress::v4(ntohl(name.sin_addr.s_addr)).to_string();
    peer.write(kOkResponse);
  });
  EXPECT_EQ(status_of(fetch(server.url())), 200);
  EXPECT_EQ(source, "127.0.0.9");
}

}  // namespace
}  // namespace postrider::http
