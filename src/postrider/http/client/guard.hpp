// The addresses that deliveries may reach. Customers choose the URLs, so the address actually dialled
// decides, on every new connection, after name resolution and before the first byte. If any address of a name
// is blocked, the name is.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/base/ip_address.hpp"
#include "postrider/http/url.hpp"

namespace postrider::http {

using base::IpAddress;

using base::Network;
using base::PortRange;

struct GuardPolicy {
  bool allow_http = false;
  std::vector<Network> allow_networks{};  // always reachable; ports are still checked
  std::vector<PortRange> allow_ports = {{80, 80}, {443, 443}, {1024, 65535}};
};

enum class BlockedReason : uint8_t {
  plain_http,
  port,
  local_name,
  loopback,
  private_network,
  link_local,
  special_purpose,  // documentation, benchmarking, anycast relays, "this network", IPv6 outside 2000::/3, ...
  multicast,
  metadata_service,
  own_address,
  unknown_own,  // this machine's own addresses cannot be read: an error of this machine, not of the endpoint
};
inline constexpr size_t kBlockedReasonCount = 11;
std::string_view to_string(BlockedReason reason);  // snake_case, for metrics
// For operators, e.g. "the address is in a private network". refused_destination.hpp words it for others.
std::string_view describe(BlockedReason reason);

struct BlockedDestination {
  BlockedReason reason;
  std::string host{};  // as in the URL
  bool is_name = false;
  std::optional<IpAddress> resolved{};  // the blocked address, if the host is a name
};

// Safe to use from any thread; one for the process is enough.
class AddressGuard {
 public:
  explicit AddressGuard(GuardPolicy policy);
  // As `base`, with further networks allowed.
  AddressGuard(const AddressGuard& base, std::span<const Network> also_allowed);
  ~AddressGuard();
  AddressGuard(const AddressGuard&) = delete;
  AddressGuard& operator=(const AddressGuard&) = delete;

  // nullopt: allowed. The machine's own addresses are read again when they are older than 10 seconds.
  std::optional<BlockedReason> check(const IpAddress& address, uint16_t port) const;

  // Checks only the text of a URL: scheme, port, literal address. A local name is blocked here only when
  // no network is allowed at all; otherwise its addresses decide.
  std::optional<BlockedReason> check(const Url& url) const;

  // All addresses of the URL's name together. A local name is usable only if the allowed networks cover
  // every one of them.
  std::optional<BlockedReason> check(const Url& url, std::span<const IpAddress> addresses) const;
  // The same, with the destination that was blocked. Without addresses, only the text of the URL is checked.
  std::optional<BlockedDestination> inspect(const Url& url, std::span<const IpAddress> addresses = {}) const;

  const GuardPolicy& policy() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postrider::http
