// Idle connections by origin, and TLS sessions for resumption. Bounded in number and age.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "postrider/http/client.hpp"
#include "postrider/http/client_connection.hpp"
#include "postrider/http/deadline_wheel.hpp"

namespace postrider::http {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
template <class Value>
using TextMap = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

class SessionCache {
 public:
  explicit SessionCache(size_t sessions_max) : sessions_max_(sessions_max) {}

  void put(std::string_view origin, TlsSession session);
  TlsSession get(std::string_view origin) const;  // null when there is none
  void forget(std::string_view origin);

 private:
  struct Entry {
    TlsSession session;
    std::list<std::string_view>::iterator age;
  };
  size_t sessions_max_;
  TextMap<Entry> entries_;
  std::list<std::string_view> oldest_first_;  // views of the keys
};

class ConnectionPool final : private ConnectionUser, private Deadline {
 public:
  ConnectionPool(DeadlineWheel& wheel, const ClientOptions& options);
  ~ConnectionPool() { close_all(); }

  // The connection that became idle last, or null. Those too old for the origin are closed on the way.
  std::unique_ptr<Connection> take(std::string_view origin);
  // A quiet connection is kept; any other, or one too many, is closed. The longest idle one makes room.
  void put(std::string_view origin, std::unique_ptr<Connection> connection);
  void close_all();
  size_t idle() const { return idle_; }
  SessionCache& sessions() { return sessions_; }

 private:
  struct Origin {
    std::vector<std::unique_ptr<Connection>> idle;  // the last became idle last
    runtime::SteadyTime used_at{};
  };

  void on_connection_ready(Connection& connection) override;
  void on_deadline() override;
  bool is_too_old(const Connection& connection, runtime::SteadyTime now) const;
  void close(Connection& connection);

  DeadlineWheel& wheel_;
  const ClientOptions& options_;
  TextMap<Origin> origins_;
  Link longest_idle_first_;
  size_t idle_ = 0;
  bool is_sweeping_ = false;
  int sweeps_until_prune_ = 0;
  SessionCache sessions_;
};

}  // namespace postrider::http
