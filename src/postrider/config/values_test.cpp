#include "postrider/config/values.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "postrider/config/suggest.hpp"

namespace postrider::config {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ParseDuration, NeedsANumberAndAUnit) {
  const std::pair<std::string_view, int64_t> good[] = {
      {"500ms", 500},    {"500 ms", 500},        {" 10s ", 10'000},       {"5m", 300'000},
      {"2h", 7'200'000}, {"30d", 2'592'000'000}, {"30 d", 2'592'000'000}, {"0s", 0}};
  for (const auto& [text, ms] : good) {
    const auto parsed = parse_duration(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(*parsed, milliseconds(ms)) << text;
  }
  for (const char* text :
       {"", "10", "s", "-1s", "1.5h", "1w", "1d12h", "10S", "9999999999999999999d", "99999999d"})
    EXPECT_FALSE(parse_duration(text).ok()) << text;
}

TEST(ParseSize, KnowsBinaryAndDecimalUnits) {
  const std::pair<std::string_view, int64_t> good[] = {
      {"65536", 65'536}, {"256KiB", 262'144}, {"1 MiB", 1'048'576}, {"2GB", 2'000'000'000}, {"3B", 3}};
  for (const auto& [text, bytes] : good) EXPECT_EQ(*parse_size(text), bytes) << text;
  for (const char* text : {"", "KiB", "-1", "1.5MiB", "1 kib", "99999999999GiB"})
    EXPECT_FALSE(parse_size(text).ok()) << text;
}

TEST(ParseInteger, KeepsItsBounds) {
  EXPECT_EQ(*parse_integer(" 7 ", {.min = 1, .max = 10}), 7);
  for (const char* text : {"", "0", "11", "7x", "0x7", "7.0", "+7", "99999999999999999999"})
    EXPECT_THAT(parse_integer(text, {.min = 1, .max = 10}).error(), HasSubstr("from 1 to 10")) << text;
}

TEST(ParseBoolean, TakesTheUsualWords) {
  for (const char* text : {"true", "TRUE", "yes", "on", "1"}) EXPECT_TRUE(*parse_boolean(text)) << text;
  for (const char* text : {"false", "no", "Off", "0"}) EXPECT_FALSE(*parse_boolean(text)) << text;
  EXPECT_FALSE(parse_boolean("maybe").ok());
}

TEST(ParseRoles, TakesAllOrAList) {
  EXPECT_EQ(*parse_roles("all"), Roles{});
  const Roles roles = *parse_roles("api, inbox");
  EXPECT_TRUE(roles.api && roles.inbox);
  EXPECT_FALSE(roles.relay || roles.delivery || roles.upkeep);
  EXPECT_THAT(parse_roles("api,worker").error(), HasSubstr("\"worker\" is none"));
  EXPECT_FALSE(parse_roles(" , ").ok());
}

TEST(ParsePorts, TakesPortsAndRanges) {
  EXPECT_THAT(*parse_ports("80, 443,1024-65535"),
              ElementsAre(PortRange{80, 80}, PortRange{443, 443}, PortRange{1'024, 65'535}));
  for (const char* text : {"", "0", "65536", "10-5", "80;443", "a-b", "1-", "-1"})
    EXPECT_FALSE(parse_ports(text).ok()) << text;
}

TEST(Network, ReadsBothFamiliesAndRefusesSlips) {
  for (const char* text : {"10.0.0.0/8", "127.0.0.1/32", "0.0.0.0/0", "::/0", "::1/128", "2001:db8::/32"}) {
    const auto network = Network::parse(text);
    ASSERT_TRUE(network) << text;
    EXPECT_EQ(network->text(), text);
  }
  EXPECT_EQ(Network::parse("10.1.2.3")->text(), "10.1.2.3/32");
  for (const char* text : {"", "10.1.2.3/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0/8", "010.0.0.0/8", "::1/129",
                           "fe80::1%eth0", "10.0.0.0/-1", "example.com/8"})
    EXPECT_FALSE(Network::parse(text)) << text;
}

TEST(Network, ContainsItsOwnFamilyOnly) {
  const Network ten = *Network::parse("10.0.0.0/8");
  EXPECT_TRUE(ten.contains(*IpAddress::parse("10.200.0.1")));
  EXPECT_FALSE(ten.contains(*IpAddress::parse("11.0.0.1")));
  EXPECT_FALSE(Network::parse("::/0")->contains(*IpAddress::parse("10.0.0.1")));
}

TEST(HostPort, ReadsAddressesAndNames) {
  EXPECT_EQ(*HostPort::parse("127.0.0.1:8090"), (HostPort{"127.0.0.1", 8090}));
  EXPECT_EQ(*HostPort::parse("[::1]:0"), (HostPort{"::1", 0}));
  EXPECT_EQ(HostPort::parse("[::1]:80")->text(), "[::1]:80");
  EXPECT_EQ(HostPort::parse("hooks.internal:80")->text(), "hooks.internal:80");
  for (const char* text :
       {"", "8090", ":8090", "::1:8090", "a:65536", "a:-1", "a:", "[x]:1", "a b:1", "http://a:1"})
    EXPECT_FALSE(HostPort::parse(text)) << text;
}

TEST(WithoutPassword, HidesItInEveryForm) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"postgres://app:s3cret@db:5432/x", "postgres://app:***@db:5432/x"},
      {"postgres://app:s3@cret@db/x", "postgres://app:***@db/x"},
      {"postgres://app@db/x", "postgres://app@db/x"},
      {"postgres://db:5432/x", "postgres://db:5432/x"},
      {"postgres://db/x?password=s3cret&sslmode=require", "postgres://db/x?password=***&sslmode=require"},
      {"host=db password=s3cret user=app", "host=db password=*** user=app"},
      {"host=db password='s3 cret' user=app", "host=db password=*** user=app"},
      {"host=db password='open", "host=db password=***"},
      {"smtps://mail%40x:p@mail.example:465", "smtps://mail%40x:***@mail.example:465"},
  };
  for (const auto& [url, expected] : cases) EXPECT_EQ(without_password(url), expected);
}

TEST(Nearest, FindsSlipsButDoesNotGuessWildly) {
  const std::vector<std::string> words = {"database_url", "data_dir", "listen"};
  EXPECT_EQ(nearest("databse_url", words), "database_url");
  EXPECT_EQ(nearest("lisen", words), "listen");
  EXPECT_EQ(nearest("colour", words), "");
}

}  // namespace
}  // namespace postrider::config
