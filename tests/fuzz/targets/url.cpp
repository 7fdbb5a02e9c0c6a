// URLs, addresses and networks: what is accepted has one meaning, written back it is the same, and no
// spelling of a private address passes the guard.
#include <string>

#include "fuzz.hpp"
#include "postrider/http/client/guard.hpp"

using namespace postrider::http;

namespace {

const AddressGuard& guard() {
  static const AddressGuard strict{GuardPolicy{}};
  return strict;
}

void check_url(std::string_view input) {
  const auto url = parse_url(input);
  if (!url) {
    CHECK(!describe(url.error()).empty());
    return;
  }
  CHECK(!url->host().empty() && url->port != 0 && url->target.starts_with('/'));
  CHECK(url->address.has_value() == (url->host_kind == HostKind::address));
  for (const char c : url->target + std::string(url->authority())) CHECK(c > 0x20 && c < 0x7F);
  const auto again = parse_url(url->origin + url->target);
  if (url->origin.size() + url->target.size() <= kUrlBytesMax) {
    CHECK(again && again->origin == url->origin && again->target == url->target &&
          again->host() == url->host());
  }
  // A number that no strict form of an address has must not become a name.
  if (!url->address)
    CHECK(url->host().back() < '0' || url->host().back() > '9' ||
          url->host().find('.') == std::string::npos || !IpAddress::parse(url->host()));
  if (url->address && !guard().check(*url)) CHECK(!guard().check(*url->address, url->port));
}

}  // namespace

void fuzz_one(std::string_view input) {
  check_url(input);
  check_url("https://" + std::string(input) + "/hook");
  if (const auto address = IpAddress::parse(input)) {
    const auto again = IpAddress::parse(address->to_string());
    CHECK(again && *again == *address);
    const IpAddress plain = address->unmapped();
    if (!plain.is_v6 && (plain.v4_number() >> 24 == 10 || plain.v4_number() >> 24 == 127))
      CHECK(guard().check(*address, 443));
  }
  if (const auto network = Network::parse(input)) CHECK(network->contains(network->address));
}
