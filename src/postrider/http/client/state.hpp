// The inside of Client, shared by client.cpp (the exchange) and client_dial.cpp (a new connection).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "postrider/http/client/client.hpp"
#include "postrider/http/client/flight.hpp"
#include "postrider/http/client/poller.hpp"
#include "postrider/http/client/pool.hpp"

namespace postrider::http {

struct Client::State {
  State(runtime::Loop& loop, const AddressGuard& address_guard, const TlsContext& tls_context,
        ClientOptions client_options);

  runtime::Task<Exchange> exchange(OutboundRequest request);

  // Dialling. On failure the flight's outcome says why.
  runtime::Task<bool> open(Flight& flight);
  runtime::Task<bool> find_addresses(Flight& flight, Addresses& addresses);
  runtime::Task<bool> connect(Flight& flight, IpAddress address);
  runtime::Task<bool> handshake(Flight& flight);

  // The exchange itself, once connected. Each returns the events to wait for, 0 when it is over.
  uint32_t begin(Flight& flight);
  uint32_t proceed(Flight& flight);
  bool send_rest(Flight& flight, std::string_view bytes);
  void receive(Flight& flight);
  void conclude_interrupt(Flight& flight);
  void conclude_failed_read(Flight& flight, const IoResult& result);
  void conclude_broken(Flight& flight, NetError error);
  void conclude_flood(Flight& flight);
  bool has_share_left(Flight& flight, size_t turn_bytes);
  void count_read(Flight& flight, const IoResult& result);
  void feed(Flight& flight, std::string_view bytes);
  bool should_resend(Flight& flight);
  void finish(Flight& flight);

  const DialProfile own_profile;
  const ClientOptions options;
  DeadlineWheel wheel;
  Poller poller;
  ReadTurns turns;
  Resolver resolver;
  ConnectionPool pool;
  Link flights;
  Stats stats;
  bool is_closed = false;
  std::string outgoing;        // one request at a time is put together here
  std::vector<char> incoming;  // one read at a time lands here
};

// The error and sentence for what the system said about a connection.
NetError net_error_of(int system_error);

}  // namespace postrider::http
