#include "postrider/http/client/guard.hpp"

#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/resource.h>

namespace postrider::http {
namespace {

using Reason = BlockedReason;

IpAddress address(std::string_view text) {
  const auto parsed = IpAddress::parse(text);
  EXPECT_TRUE(parsed.has_value()) << text;
  return *parsed;
}

struct RangeCase {
  const char* before;  // the last allowed address below; null if a neighbouring range blocks it
  const char* first;
  const char* last;
  const char* after;  // the first allowed address above, or null
  Reason reason;
};

class GuardRanges : public testing::TestWithParam<RangeCase> {
 protected:
  AddressGuard guard_{GuardPolicy()};
};

TEST_P(GuardRanges, AreRefusedFromTheFirstAddressToTheLast) {
  const RangeCase& range = GetParam();
  EXPECT_EQ(guard_.check(address(range.first), 443), range.reason) << range.first;
  EXPECT_EQ(guard_.check(address(range.last), 443), range.reason) << range.last;
  if (range.before) {
    EXPECT_EQ(guard_.check(address(range.before), 443), std::nullopt) << range.before;
  }
  if (range.after) {
    EXPECT_EQ(guard_.check(address(range.after), 443), std::nullopt) << range.after;
  }
  // The same addresses as IPv6.
  if (!address(range.first).is_v6) {
    EXPECT_EQ(guard_.check(address("::ffff:" + std::string(range.first)), 443), range.reason);
    EXPECT_EQ(guard_.check(address("::ffff:" + std::string(range.last)), 443), range.reason);
    if (range.after) {
      EXPECT_EQ(guard_.check(address("::ffff:" + std::string(range.after)), 443), std::nullopt);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    V4, GuardRanges,
    testing::Values(
        RangeCase{nullptr, "0.0.0.0", "0.255.255.255", "1.0.0.0", Reason::special_purpose},
        RangeCase{"9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0", Reason::private_network},
        RangeCase{"100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0", Reason::private_network},
        RangeCase{"126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0", Reason::loopback},
        RangeCase{"169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0", Reason::link_local},
        RangeCase{"168.63.129.15", "168.63.129.16", "168.63.129.16", "168.63.129.17",
                  Reason::metadata_service},
        RangeCase{"172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0", Reason::private_network},
        RangeCase{"191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0", Reason::special_purpose},
        RangeCase{"192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0", Reason::special_purpose},
        RangeCase{"192.31.195.255", "192.31.196.0", "192.31.196.255", "192.31.197.0",
                  Reason::special_purpose},
        RangeCase{"192.52.192.255", "192.52.193.0", "192.52.193.255", "192.52.194.0",
                  Reason::special_purpose},
        RangeCase{"192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0", Reason::special_purpose},
        RangeCase{"192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0",
                  Reason::private_network},
        RangeCase{"192.175.47.255", "192.175.48.0", "192.175.48.255", "192.175.49.0",
                  Reason::special_purpose},
        RangeCase{"198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0", Reason::special_purpose},
        RangeCase{"198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0", Reason::special_purpose},
        RangeCase{"203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0", Reason::special_purpose},
        RangeCase{"223.255.255.255", "224.0.0.0", "239.255.255.255", nullptr, Reason::multicast},
        RangeCase{nullptr, "240.0.0.0", "255.255.255.255", nullptr, Reason::special_purpose}));

INSTANTIATE_TEST_SUITE_P(
    V6, GuardRanges,
    testing::Values(
        RangeCase{nullptr, "::", "::", nullptr, Reason::special_purpose},
        RangeCase{nullptr, "::1", "::1", nullptr, Reason::loopback},
        RangeCase{nullptr, "::2", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                  "2000::", Reason::special_purpose},
        RangeCase{nullptr, "64:ff9b::", "64:ff9b::ffff:ffff", nullptr, Reason::special_purpose},
        RangeCase{nullptr, "::127.0.0.1", "::8.8.8.8", nullptr, Reason::special_purpose},
        RangeCase{"2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                  "2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:200::", Reason::special_purpose},
        RangeCase{"2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db8::",
                  "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db9::", Reason::special_purpose},
        RangeCase{"2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                  "2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2003::", Reason::special_purpose},
        RangeCase{"2620:4f:7fff:ffff:ffff:ffff:ffff:ffff", "2620:4f:8000::",
                  "2620:4f:8000:ffff:ffff:ffff:ffff:ffff", "2620:4f:8001::", Reason::special_purpose},
        RangeCase{"3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                  "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff:1000::", Reason::special_purpose},
        RangeCase{"3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                  "4000::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", nullptr, Reason::special_purpose},
        RangeCase{nullptr, "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", nullptr,
                  Reason::private_network},
        RangeCase{nullptr, "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", nullptr, Reason::link_local},
        RangeCase{nullptr, "fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", nullptr,
                  Reason::special_purpose},
        RangeCase{nullptr, "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", nullptr, Reason::multicast}));

TEST(Guard, AllowsOnlyTheListedPorts) {
  const AddressGuard guard{GuardPolicy()};
  for (const uint16_t port : {80, 443, 1024, 8080, 65535})
    EXPECT_EQ(guard.check(address("8.8.8.8"), port), std::nullopt) << port;
  for (const uint16_t port : {0, 1, 22, 25, 79, 81, 442, 444, 1023})
    EXPECT_EQ(guard.check(address("8.8.8.8"), port), Reason::port) << port;
  const AddressGuard narrow({.allow_ports = {{8443, 8443}}});
  EXPECT_EQ(narrow.check(address("8.8.8.8"), 443), Reason::port);
  EXPECT_EQ(narrow.check(address("8.8.8.8"), 8443), std::nullopt);
}

TEST(Guard, OpensExactlyTheAllowedNetworks) {
  const AddressGuard guard(
      {.allow_networks = {*Network::parse("10.1.0.0/16"), *Network::parse("fd00:1::/32")}});
  EXPECT_EQ(guard.check(address("10.1.255.255"), 443), std::nullopt);
  EXPECT_EQ(guard.check(address("::ffff:10.1.2.3"), 443), std::nullopt);
  EXPECT_EQ(guard.check(address("fd00:1::5"), 443), std::nullopt);
  EXPECT_EQ(guard.check(address("10.2.0.0"), 443), Reason::private_network);
  EXPECT_EQ(guard.check(address("fd00:2::"), 443), Reason::private_network);
  EXPECT_EQ(guard.check(address("10.1.0.1"), 22), Reason::port);
}

TEST(Guard, RefusesTheMachinesOwnAddresses) {
  const AddressGuard guard{GuardPolicy()};
  ifaddrs* list = nullptr;
  ASSERT_EQ(getifaddrs(&list), 0);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next)
    if (entry->ifa_addr != nullptr && entry->ifa_addr->sa_family == AF_INET) {
      const auto* in = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
      EXPECT_TRUE(guard.check(IpAddress::v4(ntohl(in->sin_addr.s_addr)), 443).has_value());
    }
  freeifaddrs(list);
}

std::optional<Reason> check_url(const AddressGuard& guard, std::string_view text) {
  const auto url = parse_url(text);
  EXPECT_TRUE(url.ok()) << text;
  return guard.check(*url);
}

TEST(Guard, JudgesWhatTheTextOfAUrlTells) {
  const AddressGuard guard{GuardPolicy()};
  EXPECT_EQ(check_url(guard, "https://example.com/"), std::nullopt);
  EXPECT_EQ(check_url(guard, "http://example.com/"), Reason::plain_http);
  EXPECT_EQ(check_url(guard, "https://example.com:22/"), Reason::port);
  EXPECT_EQ(check_url(guard, "https://127.0.0.1/"), Reason::loopback);
  EXPECT_EQ(check_url(guard, "https://[::ffff:169.254.169.254]/"), Reason::link_local);
  EXPECT_EQ(check_url(guard, "https://localhost/"), Reason::local_name);
  EXPECT_EQ(check_url(guard, "https://db.internal/"), Reason::local_name);
}

TEST(Guard, RefusesANameIfAnyOfItsAddressesIsRefused) {
  const AddressGuard guard{GuardPolicy()};
  const auto url = parse_url("https://rebind.example/");
  const std::vector good = {address("8.8.8.8"), address("2a00::1")};
  const std::vector mixed = {address("8.8.8.8"), address("10.0.0.1")};
  EXPECT_EQ(guard.check(*url, good), std::nullopt);
  EXPECT_EQ(guard.check(*url, mixed), Reason::private_network);
}

TEST(Guard, AllowsALocalNameOnlyWhereItsAddressesAreOpened) {
  const AddressGuard guard({.allow_networks = {*Network::parse("127.0.0.0/8")}});
  const auto url = parse_url("https://localhost/");
  const std::vector loopback = {address("127.0.0.1")};
  const std::vector both = {address("127.0.0.1"), address("::1")};
  const std::vector outside = {address("8.8.8.8")};
  EXPECT_EQ(guard.check(*url), std::nullopt);
  EXPECT_EQ(guard.check(*url, loopback), std::nullopt);
  EXPECT_EQ(guard.check(*url, both), Reason::local_name);
  EXPECT_EQ(guard.check(*url, outside), Reason::local_name);
}

TEST(Network, IsParsedStrictly) {
  for (const std::string_view text : {"10.0.0.0/8", "0.0.0.0/0", "127.0.0.1", "::/0", "::1/128", "fd00::/8"})
    EXPECT_TRUE(Network::parse(text).has_value()) << text;
  for (const std::string_view text : {"", "10.0.0.0/33", "10.0.0.1/8", "10.0.0.0/", "10.0.0.0/-1",
                                      "10.0.0.0/8x", "10/8", "::1/129", "fd00::1/8", "localhost"})
    EXPECT_FALSE(Network::parse(text).has_value()) << text;
}

TEST(Guard, WhoCannotBeToldFromThisMachineIsRefused) {
  const AddressGuard guard{GuardPolicy()};
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{0, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto blind = guard.check(address("8.8.8.8"), 443);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(blind, Reason::unknown_own);
  EXPECT_EQ(guard.check(address("8.8.8.8"), 443), std::nullopt);
}

}  // namespace
}  // namespace postrider::http
