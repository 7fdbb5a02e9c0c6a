#include "postrider/http/url.hpp"

#include <gtest/gtest.h>

namespace postrider::http {
namespace {

TEST(Url, IsTakenApart) {
  const auto url = parse_url("HTTPS://Hooks.Example.COM:8443/in/A?x=1&y=%20");
  ASSERT_TRUE(url.ok());
  EXPECT_TRUE(url->is_https);
  EXPECT_EQ(url->host(), "hooks.example.com");
  EXPECT_EQ(url->port, 8443);
  EXPECT_EQ(url->target, "/in/A?x=1&y=%20");
  EXPECT_EQ(url->authority(), "hooks.example.com:8443");
  EXPECT_EQ(url->origin, "https://hooks.example.com:8443");
  EXPECT_EQ(url->host_kind, HostKind::name);
}

struct GoodCase {
  const char* text;
  const char* authority;
  const char* target;
  HostKind kind;
};

class GoodUrls : public testing::TestWithParam<GoodCase> {};

TEST_P(GoodUrls, AreAccepted) {
  const auto url = parse_url(GetParam().text);
  ASSERT_TRUE(url.ok()) << GetParam().text << ": " << describe(url.error());
  EXPECT_EQ(url->authority(), GetParam().authority);
  EXPECT_EQ(url->target, GetParam().target);
  EXPECT_EQ(url->host_kind, GetParam().kind);
}

INSTANTIATE_TEST_SUITE_P(
    All, GoodUrls,
    testing::Values(
        GoodCase{"https://example.com", "example.com", "/", HostKind::name},
        GoodCase{"https://example.com:443/", "example.com", "/", HostKind::name},
        GoodCase{"http://example.com:443/", "example.com:443", "/", HostKind::name},
        GoodCase{"https://example.com?q", "example.com", "/?q", HostKind::name},
        GoodCase{"https://example.com./x", "example.com", "/x", HostKind::name},
        GoodCase{"https://xn--bcher-kva.example/x", "xn--bcher-kva.example", "/x", HostKind::name},
        GoodCase{"https://a_b.example.com/{id}|x", "a_b.example.com", "/{id}|x", HostKind::name},
        GoodCase{"https://8.8.8.8/x", "8.8.8.8", "/x", HostKind::address},
        GoodCase{"http://[2A00:1450::8888]:8080/", "[2a00:1450::8888]:8080", "/", HostKind::address},
        GoodCase{"https://[::ffff:1.2.3.4]/", "[::ffff:1.2.3.4]", "/", HostKind::address},
        GoodCase{"https://1.example/", "1.example", "/", HostKind::name},
        GoodCase{"https://example.com/a@b:c", "example.com", "/a@b:c", HostKind::name},
        GoodCase{"http://localhost:3000/", "localhost:3000", "/", HostKind::local_name},
        GoodCase{"http://localhost./", "localhost", "/", HostKind::local_name},
        GoodCase{"http://a.LocalHost/", "a.localhost", "/", HostKind::local_name},
        GoodCase{"http://printer.local/", "printer.local", "/", HostKind::local_name},
        GoodCase{"http://metadata.google.internal/", "metadata.google.internal", "/", HostKind::local_name},
        GoodCase{"http://nas.home.arpa/", "nas.home.arpa", "/", HostKind::local_name},
        GoodCase{"http://intranet/", "intranet", "/", HostKind::local_name},
        GoodCase{"https://notlocalhost.example/", "notlocalhost.example", "/", HostKind::name}));

struct BadCase {
  std::string text;
  UrlError error;
};

class HostileUrls : public testing::TestWithParam<BadCase> {};

TEST_P(HostileUrls, AreRefused) {
  const auto url = parse_url(GetParam().text);
  ASSERT_FALSE(url.ok()) << GetParam().text << " became " << url->origin;
  EXPECT_EQ(url.error(), GetParam().error) << GetParam().text << ": " << describe(url.error());
  EXPECT_TRUE(describe(url.error()).ends_with("."));
}

INSTANTIATE_TEST_SUITE_P(
    Text, HostileUrls,
    testing::Values(BadCase{"", UrlError::bad_scheme}, BadCase{"example.com", UrlError::bad_scheme},
                    BadCase{"//example.com/", UrlError::bad_scheme},
                    BadCase{"ftp://example.com/", UrlError::bad_scheme},
                    BadCase{"file:///etc/passwd", UrlError::bad_scheme},
                    BadCase{"gopher://example.com/", UrlError::bad_scheme},
                    BadCase{"javascript://example.com/", UrlError::bad_scheme},
                    BadCase{"https:example.com/", UrlError::bad_scheme},
                    BadCase{"https:/example.com/", UrlError::bad_scheme},
                    BadCase{" https://example.com/", UrlError::bad_character},
                    BadCase{"https://example.com/ ", UrlError::bad_character},
                    BadCase{"https://exam ple.com/", UrlError::bad_character},
                    BadCase{"https://example.com/\r\nHost: evil", UrlError::bad_character},
                    BadCase{"https://example.com/\tx", UrlError::bad_character},
                    BadCase{std::string("https://example.com/\0x", 22), UrlError::bad_character},
                    BadCase{"https://example.com\\@evil.example/", UrlError::bad_character},
                    BadCase{"https:\\\\example.com\\", UrlError::bad_character},
                    BadCase{"https://b\xc3\xbc"
                            "cher.example/",
                            UrlError::bad_character},
                    BadCase{"https://example.com/\x7f", UrlError::bad_character},
                    BadCase{"https://\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1/", UrlError::bad_character},
                    BadCase{"https://user@example.com/", UrlError::has_userinfo},
                    BadCase{"https://user:pass@example.com/", UrlError::has_userinfo},
                    BadCase{"https://@example.com/", UrlError::has_userinfo},
                    BadCase{"https://example.com@127.0.0.1/", UrlError::has_userinfo},
                    BadCase{"https://a:80@b:443/", UrlError::has_userinfo},
                    BadCase{"https://example.com/#frag", UrlError::has_fragment},
                    BadCase{"https://example.com#@evil.example/", UrlError::has_fragment},
                    BadCase{"https://example.com/" + std::string(2048, 'a'), UrlError::too_long}));

INSTANTIATE_TEST_SUITE_P(
    Hosts, HostileUrls,
    testing::Values(BadCase{"https:///x", UrlError::empty_host}, BadCase{"https://", UrlError::empty_host},
                    BadCase{"https://?x", UrlError::empty_host},
                    BadCase{"https://:443/", UrlError::empty_host},
                    BadCase{"https://./", UrlError::empty_host}, BadCase{"https://../", UrlError::bad_host},
                    BadCase{"https://.example.com/", UrlError::bad_host},
                    BadCase{"https://example..com/", UrlError::bad_host},
                    BadCase{"https://example.com../", UrlError::bad_host},
                    BadCase{"https://-a.example/", UrlError::bad_host},
                    BadCase{"https://a-.example/", UrlError::bad_host},
                    BadCase{"https://exa%6dple.com/", UrlError::bad_host},
                    BadCase{"https://example.com%00.evil.example/", UrlError::bad_host},
                    BadCase{"https://a,b.example/", UrlError::bad_host},
                    BadCase{"https://a;b.example/", UrlError::bad_host},
                    BadCase{"https://a!b.example/", UrlError::bad_host},
                    BadCase{"https://*.example/", UrlError::bad_host},
                    BadCase{"https://" + std::string(64, 'a') + ".example/", UrlError::bad_host},
                    BadCase{"https://" +
                                [] {
                                  std::string name;
                                  for (int i = 0; i < 50; ++i) name += "abcde.";
                                  return name;
                                }() +
                                "com/",
                            UrlError::bad_host}));

INSTANTIATE_TEST_SUITE_P(
    Addresses, HostileUrls,
    testing::Values(BadCase{"https://2130706433/", UrlError::bad_address},      // 127.0.0.1 in decimal
                    BadCase{"https://0x7f000001/", UrlError::bad_address},      // hex
                    BadCase{"https://0x7F.1/", UrlError::bad_address},          //
                    BadCase{"https://017700000001/", UrlError::bad_address},    // octal
                    BadCase{"https://0177.0.0.1/", UrlError::bad_address},      //
                    BadCase{"https://127.1/", UrlError::bad_address},           // short
                    BadCase{"https://127.0.1/", UrlError::bad_address},         //
                    BadCase{"https://127.0.0.1./", UrlError::bad_address},      // trailing dot
                    BadCase{"https://127.0.0.01/", UrlError::bad_address},      // leading zero
                    BadCase{"https://127.0.0.256/", UrlError::bad_address},     //
                    BadCase{"https://127.0.0.1.1/", UrlError::bad_address},     //
                    BadCase{"https://127.0.0.0x1/", UrlError::bad_address},     //
                    BadCase{"https://example.123/", UrlError::bad_address},     //
                    BadCase{"https://example.0x/", UrlError::bad_address},      //
                    BadCase{"https://0/", UrlError::bad_address},               //
                    BadCase{"https://[::1/", UrlError::bad_address},            //
                    BadCase{"https://[::1%25eth0]/", UrlError::bad_address},    // zone ids
                    BadCase{"https://[fe80::1%eth0]/", UrlError::bad_address},  //
                    BadCase{"https://[127.0.0.1]/", UrlError::bad_address},     //
                    BadCase{"https://[]/", UrlError::bad_address},              //
                    BadCase{"https://[example.com]/", UrlError::bad_address},   //
                    BadCase{"https://[::1]x/", UrlError::bad_address},          //
                    BadCase{"https://x[::1]/", UrlError::bad_address},          //
                    BadCase{"https://[::g]/", UrlError::bad_address},           //
                    BadCase{"https://[1::2::3]/", UrlError::bad_address},       //
                    BadCase{"https://::1/", UrlError::bad_address},             // no brackets
                    BadCase{"https://::1:443/", UrlError::bad_address},         //
                    BadCase{"https://[::ffff:127.1]/", UrlError::bad_address},  //
                    BadCase{"https://example.com:/", UrlError::bad_port},       //
                    BadCase{"https://example.com:0/", UrlError::bad_port},      //
                    BadCase{"https://example.com:65536/", UrlError::bad_port},  //
                    BadCase{"https://example.com:0443/", UrlError::bad_port},   //
                    BadCase{"https://example.com:+443/", UrlError::bad_port},   //
                    BadCase{"https://example.com:-1/", UrlError::bad_port},     //
                    BadCase{"https://example.com:44a/", UrlError::bad_port},    //
                    BadCase{"https://example.com:4294967739/", UrlError::bad_port},
                    BadCase{"https://a:b:443/", UrlError::bad_address}));

}  // namespace
}  // namespace postrider::http
