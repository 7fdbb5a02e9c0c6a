// Connections are reused, replaced and closed as documented.
#include "postrider/http/client/owner_profiles.hpp"
#include "postrider/http/client/testing.hpp"

namespace postrider::http {
namespace {

class ClientPool : public ClientTest {
 protected:
  runtime::Task<void> send_as(const DialProfile& profile, const Url& url, Exchange& exchange) {
    OutboundRequest request{.url = url, .profile = &profile, .deadline = base::BootClock::now() + 20s};
    exchange = co_await client_->send(request);
  }

  // Runs the loop until the condition holds; checks it every millisecond.
  void run_until(const std::function<bool()>& condition) {
    if (condition()) return;
    runtime::Timer timer(loop_);
    const std::function<void()> look = [&] {
      if (condition())
        loop_.stop();
      else
        timer.call_after(1ms, [&] { look(); });
    };
    timer.call_after(1ms, [&] { look(); });
    loop_.run();
  }
};

TEST_F(ClientPool, AConnectionServesOneRequestAfterTheOther) {
  ScriptedServer server(always(std::string(kOkResponse)));
  EXPECT_FALSE(fetch(server.url()).is_reused);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(fetch(server.url()).is_reused);
  EXPECT_EQ(server.accepted(), 1);
  EXPECT_EQ(client_->stats().idle, 1u);
}

TEST_F(ClientPool, ChunkedAndEmptyAnswersKeepTheConnection) {
  ScriptedServer chunked(always("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"));
  ScriptedServer empty(always("HTTP/1.1 204 No Content\r\n\r\n"));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(status_of(fetch(chunked.url())), 200);
    EXPECT_EQ(status_of(fetch(empty.url())), 204);
  }
  EXPECT_EQ(chunked.accepted(), 1);
  EXPECT_EQ(empty.accepted(), 1);
}

struct InvalidCase {
  const char* name;
  std::string answer;
};

class ClientInvalidResponses : public ClientTest, public testing::WithParamInterface<InvalidCase> {};

TEST_P(ClientInvalidResponses, AreNotFollowedByAnotherRequestOnTheConnection) {
  ScriptedServer server(always(GetParam().answer));
  for (int i = 0; i < 3; ++i) EXPECT_LT(status_of(fetch(server.url())), 300);
  EXPECT_EQ(server.accepted(), 3);
  EXPECT_EQ(client_->stats().idle, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    All, ClientInvalidResponses,
    testing::Values(
        InvalidCase{"LeftoverBehindNoContent", "HTTP/1.1 204 No\r\nContent-Length: 4\r\n\r\nHTTP"},
        InvalidCase{"BytesLeftOver", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n"},
        InvalidCase{"BytesBehindTheLastChunk",
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nmore"},
        InvalidCase{"Close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"},
        InvalidCase{"Http10", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"},
        InvalidCase{"LengthAndChunked",
                    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
        InvalidCase{"SwitchesProtocols", "HTTP/1.1 101 Switching\r\n\r\n"}),
    [](const auto& tested) { return tested.param.name; });

TEST_F(ClientPool, AClosedIdleConnectionIsNoticedWithoutARequest) {
  ScriptedServer server(once(std::string(kOkResponse)));
  EXPECT_EQ(status_of(fetch(server.url())), 200);
  run_until([&] { return client_->stats().idle == 0; });
  EXPECT_EQ(status_of(fetch(server.url())), 200);
  EXPECT_EQ(client_->stats().resent, 0u);
}

TEST_F(ClientPool, UnaskedBytesOnAnIdleConnectionCloseIt) {
  ScriptedServer server([](Peer& peer) {
    peer.read_request();
    peer.write(kOkResponse);
    if (peer.number == 0) peer.write("HTTP/1.1 500 Smuggled\r\nContent-Length: 0\r\n\r\n");
    peer.wait_until_closed();
  });
  EXPECT_EQ(status_of(fetch(server.url())), 200);
  run_until([&] { return client_->stats().idle == 0; });
  EXPECT_EQ(status_of(fetch(server.url())), 200);
  EXPECT_EQ(server.accepted(), 2);
}

TEST_F(ClientPool, BytesThatCameSinceItBecameIdleAreNotTheNextAnswer) {
  std::promise<void> is_idle, is_smuggled;
  ScriptedServer server([&](Peer& peer) {
    peer.read_request();
    peer.write(kOkResponse);
    if (peer.number == 0) {
      is_idle.get_future().wait();
      peer.write("HTTP/1.1 500 Smuggled\r\nContent-Length: 0\r\n\r\n");
      peer.wait_until_received();
      is_smuggled.set_value();
    }
    peer.wait_until_closed();
  });
  EXPECT_EQ(status_of(fetch(server.url())), 200);
  is_idle.set_value();
  is_smuggled.get_future().wait();  // the loop does not run meanwhile
  EXPECT_EQ(status_of(fetch(server.url())), 200);
  EXPECT_EQ(server.accepted(), 2);
}

// Every response is followed by an unrequested one, in many ways and at many moments. Each request must still
// get its own status.
TEST_F(ClientPool, AHostileReceiverCannotAnswerTheNextRequestInAdvance) {
  std::atomic<int> smuggled = 0;
  ScriptedServer server([&](Peer& peer) {
    while (!peer.read_request().empty()) {
      const int way = smuggled % 4;
      std::string answer(kOkResponse);
      const std::string extra = "HTTP/1.1 500 Smuggled\r\nContent-Length: 0\r\n\r\n";
      if (way == 0) answer += extra;               // together with the response
      if (way == 1) answer += extra.substr(0, 1);  // its first byte
      if (!peer.write(answer)) return;
      if (way == 2) peer.write(extra);   // right after it
      if (way == 3) peer.write("\r\n");  // an empty line, which many clients ignore
      peer.wait_until_received();
      ++smuggled;
      smuggled.notify_all();
    }
  });
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(status_of(fetch(server.url())), 200);
    for (int seen = smuggled; seen <= i; seen = smuggled) smuggled.wait(seen);
  }
  EXPECT_EQ(server.accepted(), 40);
  EXPECT_EQ(client_->stats().connections_reused, 0u);
}

TEST_F(ClientPool, ADeadPooledConnectionIsReplacedOnceAndTheRequestSentAgain) {
  ScriptedServer server([](Peer& peer) {
    peer.read_request();
    peer.write(kOkResponse);
    peer.read_request();  // the second request on a connection is met with a close
  });
  const Exchange first = fetch(server.url());
  EXPECT_FALSE(first.is_resent);
  const Exchange second = fetch(server.url());
  EXPECT_EQ(status_of(second), 200);
  EXPECT_TRUE(second.is_resent);
  EXPECT_EQ(second.bytes_sent, 2 * first.bytes_sent);
  EXPECT_EQ(client_->stats().resent, 1u);
  EXPECT_EQ(server.accepted(), 2);
}

TEST_F(ClientPool, ARequestIsNotSentAgainOnceAByteOfAnAnswerHasCome) {
  ScriptedServer server([](Peer& peer) {
    peer.read_request();
    peer.write(kOkResponse);
    peer.read_request();
    peer.write("H");
  });
  fetch(server.url());
  EXPECT_EQ(error_of(fetch(server.url())), "connection_closed");
  EXPECT_EQ(server.accepted(), 1);
}

TEST_F(ClientPool, ARequestOnAFreshConnectionIsNotSentAgain) {
  ScriptedServer server([](Peer& peer) { peer.read_request(); });
  EXPECT_EQ(error_of(fetch(server.url())), "connection_closed");
  EXPECT_EQ(server.accepted(), 1);
}

TEST_F(ClientPool, ConnectionsAreNotSharedBetweenDialProfiles) {
  ScriptedServer server(always(std::string(kOkResponse)));
  const auto url = parse_url(server.url());
  const AddressGuard same_networks(loopback_policy());
  const AddressGuard no_networks({.allow_http = true, .allow_ports = {{1, 65535}}});
  const TlsContext other_authorities({.trust_system_store = false});
  const DialProfile own(*guard_, *tls_), other_list(same_networks, *tls_),
      other_tls(*guard_, other_authorities);
  const DialProfile strict(no_networks, *tls_);
  const auto fetch_as = [&](const DialProfile& profile) {
    Exchange exchange;
    runtime::TaskGroup group;
    group.spawn(send_as(profile, *url, exchange));
    run_until_done(group);
    return exchange;
  };
  for (const DialProfile* profile : {&own, &other_list, &other_tls}) {
    EXPECT_FALSE(fetch_as(*profile).is_reused);
    EXPECT_TRUE(fetch_as(*profile).is_reused);
  }
  EXPECT_EQ(server.accepted(), 3);
  EXPECT_EQ(client_->stats().idle, 3u);
  EXPECT_EQ(error_of(fetch_as(strict)), "blocked") << "an idle connection must not lead past the guard";
  client_->close();
}

TEST_F(ClientPool, TheProfileOfAnOwnerIsItsOwnUntilItsNetworksChange) {
  use_policy({.allow_http = true, .allow_ports = {{1, 65535}}});
  ScriptedServer server(always(std::string(kOkResponse)));
  const auto url = parse_url(server.url());
  const std::vector<Network> loopback = {*Network::parse("127.0.0.0/8")},
                             other = {*Network::parse("127.0.0.1")};
  const DialProfile none(*guard_, *tls_);
  const auto fetch_as = [&](std::string_view owner, const std::vector<Network>& networks) {
    Exchange exchange;
    runtime::TaskGroup group;
    const auto profile = client_->profile_of(owner, networks);
    EXPECT_EQ(profile == nullptr, networks.empty());
    group.spawn(send_as(profile ? *profile : none, *url, exchange));
    run_until_done(group);
    return exchange;
  };
  EXPECT_FALSE(fetch_as("tenant/a", loopback).is_reused);
  EXPECT_TRUE(fetch_as("tenant/a", loopback).is_reused);
  EXPECT_FALSE(fetch_as("tenant/b", loopback).is_reused) << "an equal list of another owner";
  EXPECT_EQ(client_->stats().idle, 2u);
  EXPECT_EQ(error_of(fetch_as("tenant/a", {})), "blocked");
  EXPECT_EQ(client_->stats().idle, 1u) << "the connection went with the list";
  EXPECT_FALSE(fetch_as("tenant/a", loopback).is_reused);
  EXPECT_FALSE(fetch_as("tenant/a", other).is_reused);
  EXPECT_TRUE(fetch_as("tenant/b", loopback).is_reused);
  EXPECT_EQ(client_->stats().idle, 2u);
  client_->close();
}

TEST(OwnerProfiles, ThoseThatAreNotInUseAreDropped) {
  const AddressGuard guard{GuardPolicy()};
  const TlsContext tls({.trust_system_store = false});
  OwnerProfiles profiles(guard, tls);
  const std::vector<Network> networks = {*Network::parse("10.0.0.0/8")};
  const auto kept = profiles.of("kept", networks).profile;
  for (int i = 0; i < 5'000; ++i) profiles.of(std::to_string(i), networks);
  EXPECT_LE(profiles.size(), 1'001u);
  EXPECT_EQ(profiles.of("kept", networks).profile, kept);
}

TEST_F(ClientPool, IdleConnectionsEndAfterTheirTime) {
  make_client({.idle_timeout = 10ms});
  ScriptedServer server(always(std::string(kOkResponse)));
  fetch(server.url());
  EXPECT_EQ(client_->stats().idle, 1u);
  run_until([&] { return client_->stats().idle == 0; });
}

TEST_F(ClientPool, OldConnectionsAreNotReused) {
  make_client({.connection_age_max = 0ms});
  ScriptedServer server(always(std::string(kOkResponse)));
  fetch(server.url());
  fetch(server.url());
  EXPECT_EQ(server.accepted(), 2);
}

TEST_F(ClientPool, TheLongestIdleConnectionMakesRoom) {
  make_client({.idle_total_max = 2});
  ScriptedServer first(always(std::string(kOkResponse)));
  ScriptedServer second(always(std::string(kOkResponse)));
  ScriptedServer third(always(std::string(kOkResponse)));
  for (const ScriptedServer* server : {&first, &second, &third}) fetch(server->url());
  EXPECT_EQ(client_->stats().idle, 2u);
  EXPECT_TRUE(fetch(third.url()).is_reused);
  EXPECT_TRUE(fetch(second.url()).is_reused);
  EXPECT_FALSE(fetch(first.url()).is_reused);
}

TEST_F(ClientPool, AThousandExchangesRunAtOnce) {
  constexpr int count = 1000;
  std::mutex mutex;
  std::condition_variable all_here;
  int waiting = 0;
  ScriptedServer server([&](Peer& peer) {
    peer.read_request();
    std::unique_lock lock(mutex);
    if (++waiting == count) all_here.notify_all();
    all_here.wait(lock,
                  [&] { return waiting == count; });  // no response is sent before all requests have arrived
    lock.unlock();
    peer.write(kOkResponse);
    peer.wait_until_closed();
  });
  const auto url = parse_url(server.url());
  const std::string body(300, 'b');
  std::vector<Exchange> exchanges(count);
  runtime::TaskGroup group;
  for (Exchange& exchange : exchanges) group.spawn(fetch_one(*url, 60s, body, exchange));
  EXPECT_EQ(client_->stats().in_flight, static_cast<size_t>(count));
  run_until_done(group);
  for (const Exchange& exchange : exchanges) ASSERT_EQ(status_of(exchange), 200);
  EXPECT_EQ(client_->stats().idle, 32u);
}

TEST_F(ClientPool, CloseCancelsEverythingInFlightAtOnce) {
  ScriptedServer server([](Peer& peer) {
    peer.read_request();
    peer.hang();
  });
  const auto url = parse_url(server.url());
  const std::string body = "{}";
  std::vector<Exchange> exchanges(20);
  runtime::TaskGroup group;
  for (Exchange& exchange : exchanges) group.spawn(fetch_one(*url, 1h, body, exchange));
  run_until([&] { return server.accepted() == 20; });
  client_->close();
  EXPECT_EQ(group.running(), 0u);
  for (const Exchange& exchange : exchanges) EXPECT_EQ(error_of(exchange), "canceled");
  EXPECT_EQ(error_of(fetch(server.url())), "canceled");
  EXPECT_EQ(client_->stats().in_flight, 0u);
}

}  // namespace
}  // namespace postrider::http
