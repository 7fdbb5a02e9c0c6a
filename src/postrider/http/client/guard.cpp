#include "postrider/http/client/guard.hpp"

#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "postrider/base/check.hpp"
#include "postrider/base/time.hpp"

namespace postrider::http {

namespace {

using Reason = BlockedReason;
constexpr std::chrono::seconds kOwnAddressesAgeMax{10};

struct BlockedV4 {
  uint32_t address;
  int prefix_bits;
  Reason reason;
};

constexpr uint32_t quad(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return a << 24 | b << 16 | c << 8 | d;
}

constexpr BlockedV4 kRefusedV4[] = {
    {quad(0, 0, 0, 0), 8, Reason::special_purpose},        // this network
    {quad(10, 0, 0, 0), 8, Reason::private_network},       //
    {quad(100, 64, 0, 0), 10, Reason::private_network},    // carrier-grade NAT
    {quad(127, 0, 0, 0), 8, Reason::loopback},             //
    {quad(169, 254, 0, 0), 16, Reason::link_local},        // also most clouds' metadata services
    {quad(172, 16, 0, 0), 12, Reason::private_network},    //
    {quad(192, 0, 0, 0), 24, Reason::special_purpose},     // IETF protocol assignments
    {quad(192, 0, 2, 0), 24, Reason::special_purpose},     // documentation
    {quad(192, 31, 196, 0), 24, Reason::special_purpose},  // AS112
    {quad(192, 52, 193, 0), 24, Reason::special_purpose},  // AMT
    {quad(192, 88, 99, 0), 24, Reason::special_purpose},   // 6to4 relays
    {quad(192, 168, 0, 0), 16, Reason::private_network},   //
    {quad(192, 175, 48, 0), 24, Reason::special_purpose},  // AS112
    {quad(198, 18, 0, 0), 15, Reason::special_purpose},    // benchmarking
    {quad(198, 51, 100, 0), 24, Reason::special_purpose},  // documentation
    {quad(203, 0, 113, 0), 24, Reason::special_purpose},   // documentation
    {quad(224, 0, 0, 0), 4, Reason::multicast},            //
    {quad(240, 0, 0, 0), 4, Reason::special_purpose},      // reserved, broadcast
    {quad(168, 63, 129, 16), 32, Reason::metadata_service},
};

std::optional<Reason> blocked(uint32_t address) {
  for (const BlockedV4& range : kRefusedV4)
    if ((address ^ range.address) >> (32 - range.prefix_bits) == 0) return range.reason;
  return std::nullopt;
}

std::vector<Network> networks(std::initializer_list<std::string_view> texts) {
  std::vector<Network> result;
  for (const std::string_view text : texts) {
    const auto network = Network::parse(text);
    CHECK(network.has_value());
    result.push_back(*network);
  }
  return result;
}

bool any_contains(const std::vector<Network>& list, const IpAddress& address) {
  return std::any_of(list.begin(), list.end(),
                     [&](const Network& network) { return network.contains(address); });
}

// Everything outside global unicast is blocked: loopback, unique local, link local, multicast, NAT64 and the
// rest.
std::optional<Reason> blocked_v6(const IpAddress& address) {
  static const std::vector<Network> global_unicast = networks({"2000::/3"});
  static const std::vector<Network> holes =
      networks({"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "2620:4f:8000::/48"});
  static const std::vector<Network> loopback = networks({"::1"});
  static const std::vector<Network> link_local = networks({"fe80::/10"});
  static const std::vector<Network> unique_local = networks({"fc00::/7"});
  static const std::vector<Network> multicast = networks({"ff00::/8"});
  if (any_contains(global_unicast, address)) {
    if (any_contains(holes, address)) return Reason::special_purpose;
    return std::nullopt;
  }
  if (any_contains(loopback, address)) return Reason::loopback;
  if (any_contains(link_local, address)) return Reason::link_local;
  if (any_contains(unique_local, address)) return Reason::private_network;
  if (any_contains(multicast, address)) return Reason::multicast;
  return Reason::special_purpose;
}

// Nothing when they cannot be read: that takes a descriptor.
std::optional<std::vector<IpAddress>> read_own_addresses() {
  std::vector<IpAddress> result;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return std::nullopt;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    if (entry->ifa_addr->sa_family == AF_INET) {
      const auto* in = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
      result.push_back(IpAddress::v4(ntohl(in->sin_addr.s_addr)));
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      const auto* in = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr);
      std::array<uint8_t, 16> bytes{};
      std::memcpy(bytes.data(), &in->sin6_addr, bytes.size());
      result.push_back(IpAddress::v6(bytes).unmapped());
    }
  }
  freeifaddrs(list);
  return result;
}

}  // namespace

std::string_view to_string(BlockedReason reason) {
  switch (reason) {
    case Reason::plain_http:
      return "plain_http";
    case Reason::port:
      return "port";
    case Reason::local_name:
      return "local_name";
    case Reason::loopback:
      return "loopback";
    case Reason::private_network:
      return "private_network";
    case Reason::link_local:
      return "link_local";
    case Reason::special_purpose:
      return "special_purpose";
    case Reason::multicast:
      return "multicast";
    case Reason::metadata_service:
      return "metadata_service";
    case Reason::own_address:
      return "own_address";
    case Reason::unknown_own:
      return "unknown_own";
  }
  return "unknown";
}

std::string_view describe(BlockedReason reason) {
  switch (reason) {
    case Reason::plain_http:
      return "http:// is not allowed, only https:// (the setting allow_http allows it)";
    case Reason::port:
      return "the port is not allowed (the setting allow_ports lists the allowed ports)";
    case Reason::local_name:
      return "the name is one of a nearby machine (localhost, .local, .internal, no dot; "
             "allow_networks opens its network)";
    case Reason::loopback:
      return "the address is this machine (loopback; allow_networks opens it)";
    case Reason::private_network:
      return "the address is in a private network (allow_networks opens it)";
    case Reason::link_local:
      return "the address is link-local, where cloud metadata services are";
    case Reason::special_purpose:
      return "the address is reserved for special purposes";
    case Reason::multicast:
      return "the address is multicast";
    case Reason::metadata_service:
      return "the address is a cloud provider's metadata service";
    case Reason::own_address:
      return "the address belongs to this machine (allow_networks opens it)";
    case Reason::unknown_own:
      return "this machine's own addresses cannot be read, so the destination cannot be checked against them";
  }
  return "unknown";
}

namespace {

// Of this machine.
class OwnAddresses {
 public:
  std::optional<Reason> inspect(const IpAddress& address) {
    const std::lock_guard lock(mutex_);
    const base::SteadyTime now = base::BootClock::now();
    if (!own_addresses_ || now - own_addresses_at_ > kOwnAddressesAgeMax) {
      if (auto read = read_own_addresses()) own_addresses_ = std::move(read);
      own_addresses_at_ = now;
    }
    if (!own_addresses_) return Reason::unknown_own;
    const bool is_own =
        std::find(own_addresses_->begin(), own_addresses_->end(), address) != own_addresses_->end();
    return is_own ? std::optional(Reason::own_address) : std::nullopt;
  }

 private:
  std::mutex mutex_;
  std::optional<std::vector<IpAddress>> own_addresses_;
  base::SteadyTime own_addresses_at_{};
};

}  // namespace

struct AddressGuard::State {
  GuardPolicy policy;
  // Shared with guards that allow more, which may outlive this one.
  std::shared_ptr<OwnAddresses> own = std::make_shared<OwnAddresses>();

  bool is_port_allowed(uint16_t port) const {
    return std::any_of(policy.allow_ports.begin(), policy.allow_ports.end(),
                       [port](const PortRange& range) { return range.first <= port && port <= range.last; });
  }
};

AddressGuard::AddressGuard(GuardPolicy policy) : state_(std::make_unique<State>()) {
  state_->policy = std::move(policy);
}
AddressGuard::AddressGuard(const AddressGuard& base, std::span<const Network> also_allowed)
    : state_(std::make_unique<State>(*base.state_)) {
  auto& networks = state_->policy.allow_networks;
  networks.insert(networks.end(), also_allowed.begin(), also_allowed.end());
}
AddressGuard::~AddressGuard() = default;

const GuardPolicy& AddressGuard::policy() const {
  return state_->policy;
}

std::optional<BlockedReason> AddressGuard::check(const IpAddress& given, uint16_t port) const {
  const IpAddress address = given.unmapped();
  if (!state_->is_port_allowed(port)) return Reason::port;
  if (any_contains(state_->policy.allow_networks, address)) return std::nullopt;
  if (const auto reason = address.is_v6 ? blocked_v6(address) : blocked(address.v4_number())) return reason;
  return state_->own->inspect(address);
}

std::optional<BlockedReason> AddressGuard::check(const Url& url) const {
  if (!url.is_https && !state_->policy.allow_http) return Reason::plain_http;
  if (url.address) return check(*url.address, url.port);
  if (!state_->is_port_allowed(url.port)) return Reason::port;
  if (url.host_kind == HostKind::local_name && state_->policy.allow_networks.empty())
    return Reason::local_name;
  return std::nullopt;
}

std::optional<BlockedReason> AddressGuard::check(const Url& url, std::span<const IpAddress> addresses) const {
  const auto blocked = inspect(url, addresses);
  if (!blocked) return std::nullopt;
  return blocked->reason;
}

std::optional<BlockedDestination> AddressGuard::inspect(const Url& url,
                                                        std::span<const IpAddress> addresses) const {
  BlockedDestination blocked{
      .reason = Reason::port, .host = std::string(url.host()), .is_name = !url.address};
  if (const auto reason = check(url)) {
    blocked.reason = *reason;
    return blocked;
  }
  for (const IpAddress& address : addresses) {
    const bool is_opened = any_contains(state_->policy.allow_networks, address.unmapped());
    const bool is_local = url.host_kind == HostKind::local_name && !is_opened;
    const auto reason = is_local ? std::optional(Reason::local_name) : check(address, url.port);
    if (!reason) continue;
    blocked.reason = *reason;
    if (blocked.is_name) blocked.resolved = address;
    return blocked;
  }
  return std::nullopt;
}

}  // namespace postrider::http
