#include "postrider/http/client/pool.hpp"

#include <algorithm>

#include "postrider/base/check.hpp"

namespace postrider::http {

namespace {

constexpr std::chrono::seconds kSweepInterval{1};
// Dropping the entries of origins without connections walks over all of them.
constexpr int kSweepsPerPrune = 30;

}  // namespace

void SessionCache::put(const PoolKeyView& key, TlsSession session) {
  if (!session || sessions_max_ == 0) return;
  auto found = entries_.find(key);
  if (found != entries_.end()) {
    found->second.session = std::move(session);
    oldest_first_.splice(oldest_first_.end(), oldest_first_, found->second.age);
    return;
  }
  if (entries_.size() >= sessions_max_) {
    const PoolKeyView oldest = oldest_first_.front();
    forget(oldest);
  }
  found = entries_.emplace(key, Entry{std::move(session), oldest_first_.end()}).first;
  found->second.age = oldest_first_.insert(oldest_first_.end(), found->first.view());
}

TlsSession SessionCache::get(const PoolKeyView& key) const {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  SSL_SESSION_up_ref(found->second.session.get());
  return TlsSession(found->second.session.get());
}

void SessionCache::forget(const PoolKeyView& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  oldest_first_.erase(found->second.age);
  entries_.erase(found);
}

ConnectionPool::ConnectionPool(DeadlineWheel& wheel, const ClientOptions& options)
    : wheel_(wheel), options_(options), sessions_(options.sessions_max) {}

std::unique_ptr<Connection> ConnectionPool::take(const PoolKeyView& key) {
  const auto found = origins_.find(key);
  if (found == origins_.end()) return nullptr;
  auto& idle = found->second.idle;
  const runtime::SteadyTime now = base::BootClock::now();
  while (!idle.empty()) {
    std::unique_ptr<Connection> connection = std::move(idle.back());
    idle.pop_back();
    --idle_;
    connection->leave_idle_list();
    connection->set_user(nullptr);
    // Data that arrived while it was idle would be read as the response to the next request.
    if (!is_too_old(*connection, now) && connection->is_still_quiet()) return connection;
  }
  return nullptr;
}

void ConnectionPool::put(const PoolKeyView& key, std::unique_ptr<Connection> connection) {
  if (connection->tls() != nullptr) sessions_.put(key, connection->tls()->take_session());
  const runtime::SteadyTime now = base::BootClock::now();
  if (options_.idle_total_max == 0 || !connection->is_quiet() || is_too_old(*connection, now)) return;
  auto found = origins_.find(key);
  if (found == origins_.end()) found = origins_.emplace(key, Origin()).first;
  if (found->second.idle.size() >= options_.idle_per_origin_max) return;
  if (idle_ >= options_.idle_total_max) close(longest_idle_first_.front());

  connection->idle_since = found->second.used_at = now;
  connection->pool_key = &found->first;
  connection->set_user(this);
  longest_idle_first_.push_back(*connection);
  found->second.idle.push_back(std::move(connection));
  ++idle_;
  if (!is_sweeping_) {
    is_sweeping_ = true;
    wheel_.set(*this, now + kSweepInterval);
  }
}

void ConnectionPool::close_all() {
  while (!longest_idle_first_.empty()) close(longest_idle_first_.front());
  origins_.clear();
  clear_deadline();
  is_sweeping_ = false;
}

void ConnectionPool::close_all_of(uint64_t profile) {
  std::vector<Connection*> idle;
  for (const auto& [key, origin] : origins_)
    if (key.profile == profile)
      for (const auto& connection : origin.idle) idle.push_back(connection.get());
  for (Connection* connection : idle) close(*connection);
}

void ConnectionPool::on_connection_ready(Connection& connection) {
  if (!connection.is_quiet()) close(connection);
}

void ConnectionPool::on_deadline() {
  const runtime::SteadyTime now = base::BootClock::now();
  while (!longest_idle_first_.empty()) {
    Connection& oldest = longest_idle_first_.front();
    if (now - oldest.idle_since < options_.idle_timeout) break;
    close(oldest);
  }
  if (--sweeps_until_prune_ <= 0) {
    sweeps_until_prune_ = kSweepsPerPrune;
    std::erase_if(origins_, [&](const auto& entry) {
      return entry.second.idle.empty() && now - entry.second.used_at > options_.idle_timeout;
    });
  }
  is_sweeping_ = !origins_.empty();
  if (is_sweeping_) wheel_.set(*this, now + kSweepInterval);
}

bool ConnectionPool::is_too_old(const Connection& connection, runtime::SteadyTime now) const {
  return now - connection.opened_at >= options_.connection_age_max;
}

void ConnectionPool::close(Connection& connection) {
  if (connection.tls() != nullptr)
    sessions_.put(connection.pool_key->view(), connection.tls()->take_session());
  auto& idle = origins_.find(connection.pool_key->view())->second.idle;
  const auto found = std::find_if(idle.begin(), idle.end(),
                                  [&](const auto& candidate) { return candidate.get() == &connection; });
  CHECK(found != idle.end());
  connection.leave_idle_list();
  --idle_;
  idle.erase(found);
}

}  // namespace postrider::http
