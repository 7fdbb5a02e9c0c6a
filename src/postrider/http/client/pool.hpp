// Idle connections by dial profile and origin, and TLS sessions for resumption. Bounded in number and age.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "postrider/http/client/client.hpp"
#include "postrider/http/client/connection.hpp"
#include "postrider/http/client/deadline_wheel.hpp"

namespace postrider::http {

struct PoolKeyHash {
  using is_transparent = void;
  size_t operator()(const PoolKeyView& key) const {
    return std::hash<std::string_view>()(key.origin) ^ key.profile * 0x9e3779b97f4a7c15;
  }
  size_t operator()(const PoolKey& key) const { return (*this)(key.view()); }
};
struct PoolKeyEqual {
  using is_transparent = void;
  static PoolKeyView view(const PoolKey& key) { return key.view(); }
  static PoolKeyView view(const PoolKeyView& key) { return key; }
  bool operator()(const auto& a, const auto& b) const { return view(a) == view(b); }
};
template <class Value>
using PoolMap = std::unordered_map<PoolKey, Value, PoolKeyHash, PoolKeyEqual>;

class SessionCache {
 public:
  explicit SessionCache(size_t sessions_max) : sessions_max_(sessions_max) {}

  void put(const PoolKeyView& key, TlsSession session);
  TlsSession get(const PoolKeyView& key) const;  // null when there is none
  void forget(const PoolKeyView& key);

 private:
  struct Entry {
    TlsSession session;
    std::list<PoolKeyView>::iterator age;
  };
  size_t sessions_max_;
  PoolMap<Entry> entries_;
  std::list<PoolKeyView> oldest_first_;  // views of the keys
};

class ConnectionPool final : private ConnectionUser, private Deadline {
 public:
  ConnectionPool(DeadlineWheel& wheel, const ClientOptions& options);
  ~ConnectionPool() { close_all(); }

  // The connection that became idle last, or null. Those that are too old, or that received anything while
  // idle, are closed.
  std::unique_ptr<Connection> take(const PoolKeyView& key);
  // A quiet connection is kept; any other is closed. At the limit, the one that has been idle longest is
  // closed.
  void put(const PoolKeyView& key, std::unique_ptr<Connection> connection);
  void close_all();
  void close_all_of(uint64_t profile);
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
  PoolMap<Origin> origins_;
  IntrusiveList<Connection, ConnectionPool> longest_idle_first_;
  size_t idle_ = 0;
  bool is_sweeping_ = false;
  int sweeps_until_prune_ = 0;
  SessionCache sessions_;
};

}  // namespace postrider::http
