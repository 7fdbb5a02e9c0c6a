#include "postrider/http/client/blocked_destination.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postrider::http {
namespace {

using testing::HasSubstr;
using testing::Not;

IpAddress address(std::string_view text) {
  return *IpAddress::parse(text);
}

// The guard's message about a URL for the audience; "" if it is allowed.
std::string worded(std::string_view text, const std::vector<IpAddress>& addresses, Audience audience) {
  GuardPolicy policy;
  policy.allow_networks.push_back(*Network::parse("192.168.77.0/24"));
  const AddressGuard guard(policy);
  const auto blocked = guard.inspect(*parse_url(text), addresses);
  return blocked ? describe(*blocked, audience) : "";
}

struct Case {
  const char* url;
  std::vector<IpAddress> addresses;
  const char* operators;  // a part of it
  const char* customers;  // all of it
};

TEST(BlockedDestination, CustomersLearnWhatIsWrongWithWhatTheyTypedAndNothingElse) {
  const Case cases[] = {
      {"http://hooks.example.com/",
       {},
       "allow_http",
       "destination not allowed: http:// is not allowed, only https://"},
      {"https://hooks.example.com:22/",
       {},
       "allow_ports",
       "destination not allowed: the port is not allowed"},
      {"https://10.1.2.3/",
       {},
       "private network (",
       "destination not allowed: the address is in a private network"},
      {"https://[::1]/", {}, "loopback", "destination not allowed: the address is a loopback address"},
      {"https://169.254.169.254/", {}, "metadata", "destination not allowed: the address is link-local"},
      {"https://db.example.com/",
       {address("10.1.2.3")},
       "db.example.com resolves to 10.1.2.3; ",
       "destination not allowed"},
      {"https://db.example.com/",
       {address("8.8.8.8"), address("fd00::7")},
       "resolves to fd00::7; ",
       "destination not allowed"},
      {"https://vault.internal/",
       {address("8.8.8.8")},
       "vault.internal resolves to 8.8.8.8; ",
       "destination not allowed"},
  };
  for (const Case& each : cases) {
    const std::string stored = worded(each.url, each.addresses, Audience::operators);
    EXPECT_THAT(stored, HasSubstr(each.operators)) << each.url;
    EXPECT_EQ(worded(each.url, each.addresses, Audience::customers), each.customers) << each.url;
    EXPECT_EQ(shown_to(Audience::customers, stored), each.customers) << each.url;
    EXPECT_EQ(shown_to(Audience::operators, stored), stored) << each.url;
  }
}

TEST(BlockedDestination, ALocalNameIsAName) {
  const AddressGuard guard(GuardPolicy{});
  const auto blocked = guard.inspect(*parse_url("https://localhost/"));
  ASSERT_TRUE(blocked.has_value());
  EXPECT_EQ(describe(*blocked, Audience::customers), "destination not allowed");
  EXPECT_EQ(shown_to(Audience::customers, describe(*blocked, Audience::operators)),
            "destination not allowed");
}

TEST(BlockedDestination, ThatAnAddressIsThisMachinesOwnIsNotSaid) {
  const BlockedDestination own{.reason = BlockedReason::own_address, .host = "203.0.113.9"};
  EXPECT_THAT(describe(own, Audience::operators), HasSubstr("this machine"));
  for (const std::string& shown : {describe(own, Audience::customers),
                                   shown_to(Audience::customers, describe(own, Audience::operators))})
    EXPECT_EQ(shown, "destination not allowed: the address is not allowed");
}

TEST(BlockedDestination, OtherSentencesStay) {
  EXPECT_EQ(shown_to(Audience::customers, "connection refused"), "connection refused");
  EXPECT_EQ(shown_to(Audience::customers, "destination not allowed: something new at 10.0.0.1"),
            "destination not allowed");
}

}  // namespace
}  // namespace postrider::http
