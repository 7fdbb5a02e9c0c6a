// The outbound HTTP client: every request whose target a customer or tenant chose goes through it.
//
// One Client per Loop, used on its thread only. It never throws for what an endpoint does, follows no
// redirects, reads no proxy settings, requests no compression and inflates nothing. Connections are kept
// alive and pooled per dial profile and origin, pinned to an address that the guard has allowed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "postrider/base/ip_address.hpp"
#include "postrider/http/client/guard.hpp"
#include "postrider/http/client/resolver.hpp"
#include "postrider/http/client/tls.hpp"
#include "postrider/http/net_error.hpp"
#include "postrider/http/url.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::http {

using base::IpAddress;

// Where connections may go, and how the peer is verified and this side identified. Two requests share a
// connection or a TLS session only if they have the same profile: what one list of allowed networks, one set
// of authorities or one client certificate permits is never available to requests with another. Copies are
// the same profile. The guard and the TLS context outlive it.
class DialProfile {
 public:
  DialProfile(const AddressGuard& guard, const TlsContext& tls);

  const AddressGuard& guard() const { return *guard_; }
  const TlsContext& tls() const { return *tls_; }
  uint64_t id() const { return id_; }

 private:
  const AddressGuard* guard_;
  const TlsContext* tls_;
  uint64_t id_;
};

struct ClientOptions {
  ResolverOptions resolver{};
  std::optional<IpAddress> bind_address{};  // source address; only targets of its family are then reachable
  size_t idle_per_origin_max = 32;
  size_t idle_total_max = 10'000;
  std::chrono::milliseconds idle_timeout{60'000};
  std::chrono::milliseconds connection_age_max{300'000};  // so that a moved name is noticed
  size_t sessions_max = 10'000;                           // TLS sessions kept for resumption, one per origin
  // After a complete head, reading on yields only a preview and a reusable connection. A free slot is worth
  // more.
  std::chrono::milliseconds body_wait_max{2'000};
};

// A receiver's response is only shown to people, and this much is enough.
inline constexpr size_t kResponsePreviewBytesMax = 1024;

// Everything borrowed (url, headers, body, profile, on_answer_body) must live until send() has finished.
struct OutboundRequest {
  const Url& url;
  std::string_view method = "POST";
  // Complete lines as append_header makes them. The client adds host and content-length; hop-by-hop headers
  // must not be in here.
  std::string_view headers{};
  std::string_view body{};
  const DialProfile* profile = nullptr;  // null: the client's own
  runtime::SteadyTime deadline{};        // over lookup, connect, TLS, sending, head and body together
  size_t response_body_bytes_max = 64 * 1024;
  size_t response_kept_bytes_max = kResponsePreviewBytesMax;  // of the body, in Answer::body_start
  // Receives the body of a 2xx response as it arrives, for streams and long responses; must not throw.
  const std::function<void(std::string_view)>* on_response_body = nullptr;
  // For streams: after this long without a byte of the body the response counts as interrupted. 0:
  // body_wait_max over the whole body.
  std::chrono::milliseconds response_silence_max{0};
};

// The one rule for headers that postrider sends: a name is a token, and a value has no control character but
// tab. So a header value can never inject another header.
bool is_header(std::string_view name, std::string_view value);
// Appends "name: value\r\n". False: not a valid header, and nothing was appended.
[[nodiscard]] bool append_header(std::string& lines, std::string_view name, std::string_view value);

struct ReceivedResponse {
  int status = 0;
  std::string retry_after;   // raw, empty when absent
  std::string content_type;  // raw, empty when absent
  std::string head;          // raw, with its status line; kept only if the status is not a 2xx
  std::string body_start;  // at most answer_kept_bytes_max, raw: see preview.hpp before showing or storing it
  bool is_complete = false;  // the whole body was read; false: stalled, cut, malformed or too long
  uint64_t body_bytes = 0;   // read so far
};

struct NetFailure {
  NetError error;
  std::string detail{};  // one sentence for a person, e.g. "TLS certificate expired on 2026-01-02"
  std::optional<BlockedReason> blocked_reason{};  // when blocked
};

struct PhaseTimes {  // zero for a phase that did not happen
  std::chrono::microseconds lookup{0};
  std::chrono::microseconds connect{0};
  std::chrono::microseconds tls{0};
  std::chrono::microseconds send{0};        // until the last byte of the request was written
  std::chrono::microseconds first_byte{0};  // from the start of sending
  std::chrono::microseconds total{0};
};

struct Exchange {
  std::variant<NetFailure, ReceivedResponse> outcome = NetFailure{NetError::canceled, {}, {}};
  PhaseTimes times;
  std::optional<IpAddress> remote;  // the address dialled last
  bool is_reused = false;           // went over a pooled connection
  // A pooled connection turned out to be closed before any byte of a response, and the request was sent once
  // more on a new one. Delivery is at-least-once with a stable id, so the small chance of a repeat is within
  // the contract.
  bool is_resent = false;
  uint64_t bytes_sent = 0;  // of the request, head and body, without TLS; of both requests if it was resent

  const ReceivedResponse* answer() const { return std::get_if<ReceivedResponse>(&outcome); }
  const NetFailure* failure() const { return std::get_if<NetFailure>(&outcome); }
};

class Client {
 public:
  // The guard and the TLS context are the profile of requests that name none; they outlive the client.
  Client(runtime::Loop& loop, const AddressGuard& guard, const TlsContext& tls, ClientOptions options);
  ~Client();  // no exchange may be in flight: call close(), then join the senders
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  runtime::Task<Exchange> send(OutboundRequest request);

  // Cancels everything in flight (those exchanges end as canceled before this returns) and closes idle
  // connections. Later sends are canceled at once.
  void close();

  // The profile of an owner that may reach these networks, besides those of the client's guard; null: none.
  // It is the owner's alone, and replaced when its networks change: connections that are idle under the old
  // one are closed then, and those in use are not used again.
  std::shared_ptr<const DialProfile> profile_of(std::string_view owner, std::span<const Network> networks);

  Resolver& resolver();

  struct Stats {
    uint64_t exchanges = 0;
    uint64_t bytes_received = 0;  // TLS included
    uint64_t connections_opened = 0;
    uint64_t connections_reused = 0;
    uint64_t resent = 0;
    uint64_t tls_handshakes = 0;
    uint64_t tls_resumed = 0;
    size_t in_flight = 0;
    size_t idle = 0;
  };
  const Stats& stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postrider::http
