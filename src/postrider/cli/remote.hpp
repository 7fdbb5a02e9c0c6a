// A running postrider, over HTTP. Every call blocks until the response is there.
#pragma once

#include <boost/json/value.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace postrider::cli {

struct ServerOptions {
  std::string url = "http://127.0.0.1:8090";
  std::string key = {};      // empty: none
  std::string ca_file = {};  // empty: only the system's authorities
};

// A path and its query, put together piece by piece; everything is escaped.
//   Target("v1", "tenants", tenant, "events").with("type", type)
class Target {
 public:
  template <class... Segments>
  explicit Target(const Segments&... segments) {
    (add_segment(segments), ...);
  }
  Target& with(std::string_view name, const std::optional<std::string>& value);
  std::string text() const { return path_ + query_; }

 private:
  void add_segment(std::string_view segment);
  std::string path_, query_;
};

// A 4xx or 5xx response. what() is the detail for people.
struct ServerProblem : std::runtime_error {
  ServerProblem(int status_code, std::string message, boost::json::value whole)
      : std::runtime_error(message), status(status_code), document(std::move(whole)) {}
  int status;
  boost::json::value document;  // RFC 9457; null if it was something else
};

// No response: connection refused, timeout, TLS.
struct ServerUnreachable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct RemoteCall {
  std::string method;
  Target target;
  std::optional<std::string> body = {};  // JSON
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::chrono::milliseconds timeout{60'000};
  std::chrono::milliseconds silence_max{0};  // of a stream, between two pieces; 0: only the timeout counts
};

class Remote {
 public:
  explicit Remote(ServerOptions options);
  ~Remote();

  // The response's JSON; null without a body. Throws ServerProblem for 4xx and 5xx, ServerUnreachable.
  boost::json::value call(const RemoteCall& call);
  boost::json::value get(const Target& target) { return call({"GET", target}); }
  boost::json::value send(std::string method, const Target& target, const boost::json::value& body);

  // The status of any response. Throws ServerUnreachable.
  int status_of(const RemoteCall& call);

  // As call(), for responses that are not JSON.
  std::string text(const RemoteCall& call);

  // A stream (such as server-sent events): `on_data` gets the body of a 2xx response as it arrives, until
  // the server ends it or the timeout passes. False: it was interrupted. Throws as call() if it never began.
  bool stream(const RemoteCall& call, const std::function<void(std::string_view)>& on_data);

  const std::string& url() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postrider::cli
