// Names to addresses, asynchronously, on one loop (c-ares), with a bounded cache that honours TTLs.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/base/ip_address.hpp"
#include "postrider/base/result.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::http {

using base::IpAddress;

struct ResolverOptions {
  std::string servers{};  // "127.0.0.1:5353,[::1]:53"; empty: those of resolv_conf
  // Read again after it has changed. Lookups that have started end with the servers they started with.
  std::string resolv_conf = "/etc/resolv.conf";
  std::chrono::milliseconds resolv_conf_interval{5'000};  // between two checks of the file
  uint16_t port = 53;                                     // of the servers in it
  size_t entries_max = 20'000;
  std::chrono::milliseconds ttl_min{5'000};
  std::chrono::milliseconds ttl_max{300'000};
  std::chrono::milliseconds ttl_not_found{5'000};
  std::chrono::milliseconds ttl_failed{1'000};
  std::chrono::milliseconds query_timeout{2'000};
  int query_tries = 3;
};

// local: no query could be sent, because this machine was out of descriptors.
enum class LookupError : uint8_t { not_found, failed, timed_out, canceled, local };

using Addresses = std::vector<IpAddress>;  // IPv4 first: most endpoints have it, and broken IPv6 is common

class Resolver {
 public:
  Resolver(runtime::Loop& loop, ResolverOptions options);
  ~Resolver();  // no lookup may be waiting
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // Simultaneous lookups of one name share one query; /etc/hosts is honoured; search domains are not.
  // A lookup that times out for its caller continues and fills the cache.
  runtime::Task<base::Result<Addresses, LookupError>> resolve(std::string host, runtime::SteadyTime deadline);

  // Ends all waiting lookups as canceled; later ones are canceled at once.
  void close();

  struct Stats {
    uint64_t lookups = 0;
    uint64_t cache_hits = 0;
    uint64_t queries = 0;
    uint64_t failures = 0;
  };
  const Stats& stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postrider::http
