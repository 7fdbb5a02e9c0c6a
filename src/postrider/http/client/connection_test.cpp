// A connection notices its peer's state before the poller reports it.
#include <fcntl.h>

#include "postrider/http/client/connection.hpp"
#include "postrider/http/client/testing.hpp"

namespace postrider::http {
namespace {

int connected_to(const ScriptedServer& server) {
  const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(server.port());
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(descriptor, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  EXPECT_EQ(fcntl(descriptor, F_SETFL, O_NONBLOCK), 0);
  return descriptor;
}

void wait_for_reset(int descriptor) {
  pollfd waits[] = {{descriptor, 0, 0}};
  poll(waits, 1, -1);
}

TEST(ClientConnection, WhatAPeerSaidBeforeItsResetIsReadableOnceAWriteFailed) {
  ScriptedServer server([](Peer& peer) {
    peer.write("refused");
    peer.wait_until_received();
    peer.reset();
  });
  const int descriptor = connected_to(server);
  runtime::Loop loop;
  Poller poller(loop);  // the loop does not run, so no edge is reported
  Connection connection(poller, descriptor, *IpAddress::parse("127.0.0.1"));
  wait_for_reset(descriptor);

  EXPECT_EQ(connection.write("request").kind, IoResult::Kind::failed);
  EXPECT_TRUE(connection.is_ready(Connection::kReadable));
  char bytes[16];
  const IoResult said = connection.read(bytes, sizeof bytes);
  ASSERT_EQ(said.kind, IoResult::Kind::moved);
  EXPECT_EQ(std::string_view(bytes, said.bytes), "refused");
  EXPECT_TRUE(connection.is_ready(Connection::kReadable)) << "the end itself is still to be read";
  EXPECT_NE(connection.read(bytes, sizeof bytes).kind, IoResult::Kind::would_block);
}

}  // namespace
}  // namespace postrider::http
