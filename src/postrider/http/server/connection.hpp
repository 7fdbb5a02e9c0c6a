// One connection of a Server: reads requests, has them handled one after the other, and writes the responses
// in order.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <optional>
#include <string>

#include "postrider/http/server/listener.hpp"
#include "postrider/http/server/proxies.hpp"
#include "postrider/http/server/request_reader.hpp"
#include "postrider/http/server/response_writer.hpp"
#include "postrider/http/server/server.hpp"
#include "postrider/http/server/upload.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/telemetry/metrics.hpp"

namespace postrider::http {

// A typed executor: the type-erased default costs 6 % per request.
using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, boost::asio::io_context::executor_type>;

// Shared by the connections of one server. One loop.
struct ServerContext {
  runtime::Loop& loop;
  Handler& handler;
  const ServerOptions options;
  std::shared_ptr<ListenerState> listener;
  TrustedProxies proxies;
  TrustedProxies uncounted;
  std::array<telemetry::Counter, 5> requests;  // by status class
  std::string date;
  uint64_t request_seed;
  bool is_draining = false;

  void make_request_id(std::string& id);
};

// Shared: a flush that was posted to the loop may run after the connection is closed.
class ServerConnection : public std::enable_shared_from_this<ServerConnection> {
 public:
  // `counted`: the client that the listener counts it for until it makes an authenticated request, or empty.
  ServerConnection(ServerContext& context, Socket socket, std::string peer, std::string counted);

  runtime::Task<void> serve();
  runtime::Task<void> serve_rejection(RequestError rejection);  // for a connection over the limit

  void expire(base::SteadyTime now);  // ends what takes too long
  void drain();                       // ends what only waits for a next request
  void cut();                         // ends everything

 private:
  class Stream;
  struct Read;
  struct Writable;

  void advance();  // as far as the bytes at hand reach
  void accept_body(size_t bytes_max);
  void identify(Request& request);
  runtime::Task<void> admit();
  runtime::Task<Admission> ask_handler(Request& head);
  runtime::Task<bool> receive();  // false: no more requests from here
  runtime::Task<bool> flush();    // false: the client is gone
  bool send_some();               // without waiting; false: the client is gone
  void flush_soon();
  runtime::Task<void> answer();
  runtime::Task<Response> respond(Request& request);
  runtime::Task<void> stream(Response& response);
  runtime::Task<void> reject();
  runtime::Task<void> linger();
  void append_response_to(Response& response, bool close);
  base::SteadyTime read_deadline() const;
  void end_counting();
  bool is_client_gone() const;

  ServerContext& context_;
  Socket socket_;
  const std::string peer_;
  const bool is_peer_trusted_;
  std::string counted_;

  RequestReader reader_;
  std::unique_ptr<char[]> in_;
  size_t in_begin_ = 0, in_end_ = 0;
  std::string out_;
  size_t out_sent_ = 0;

  base::SteadyTime deadline_ = base::SteadyTime::max();  // of the wait in progress
  base::SteadyTime head_began_at_;
  Upload upload_;
  std::optional<Response> rejection_;  // the handler's
  bool is_first_request_ = true;
  bool is_expired_ = false, is_cut_ = false, is_closing_ = false;
  bool is_receiving_ = false, is_flush_posted_ = false;
};

}  // namespace postrider::http
