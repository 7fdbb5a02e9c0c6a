// The inside of Client, shared by client.cpp (the exchange) and client_dial.cpp (a new connection).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "postrider/http/client/client.hpp"
#include "postrider/http/client/exchange_in_progress.hpp"
#include "postrider/http/client/owner_profiles.hpp"
#include "postrider/http/client/poller.hpp"
#include "postrider/http/client/pool.hpp"

namespace postrider::http {

struct Client::State {
  State(runtime::Loop& loop, const AddressGuard& address_guard, const TlsContext& tls_context,
        ClientOptions client_options);

  runtime::Task<Exchange> exchange(OutboundRequest request);

  // Dialling. On failure the exchange's outcome says why.
  runtime::Task<bool> open(ExchangeInProgress& current);
  runtime::Task<bool> find_addresses(ExchangeInProgress& current, Addresses& addresses);
  runtime::Task<bool> connect(ExchangeInProgress& current, IpAddress address);
  runtime::Task<bool> handshake(ExchangeInProgress& current);

  // The exchange itself, once connected. Each returns the events to wait for, 0 when it is over.
  uint32_t begin(ExchangeInProgress& current);
  uint32_t proceed(ExchangeInProgress& current);
  bool send_rest(ExchangeInProgress& current, std::string_view bytes);
  void receive(ExchangeInProgress& current);
  void conclude_interrupt(ExchangeInProgress& current);
  void conclude_failed_read(ExchangeInProgress& current, const IoResult& result);
  void conclude_broken(ExchangeInProgress& current, NetError error);
  void conclude_flood(ExchangeInProgress& current);
  bool has_share_left(ExchangeInProgress& current, size_t turn_bytes);
  void count_read(ExchangeInProgress& current, const IoResult& result);
  void feed(ExchangeInProgress& current, std::string_view bytes);
  bool should_resend(ExchangeInProgress& current);
  void finish(ExchangeInProgress& current);

  const DialProfile own_profile;
  OwnerProfiles owner_profiles;
  const ClientOptions options;
  DeadlineWheel wheel;
  Poller poller;
  ReadTurns turns;
  Resolver resolver;
  ConnectionPool pool;
  ExchangeInProgress::List in_progress;
  Stats stats;
  bool is_closed = false;
  std::string outgoing;        // one request at a time is put together here
  std::vector<char> incoming;  // one read at a time lands here
};

// The error and sentence for a system error of a connection.
NetError net_error_of(int system_error);

}  // namespace postrider::http
