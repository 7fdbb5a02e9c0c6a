#include "postrider/web/cookies.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "postrider/web/sessions.hpp"

namespace postrider::web {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string token(43, 't');

http::Request request(std::vector<http::Field> fields) {
  http::Request made;
  made.method = http::Method::post;
  made.fields = std::move(fields);
  return made;
}

TEST(Cookies, AreForThisHostOnlyAndOutOfReachOfScripts) {
  const std::string cookie = set_cookie(SessionKind::console, Transport::https, token, std::chrono::hours(1));
  EXPECT_THAT(cookie, StartsWith("__Host-postrider-console=" + token + ";"));
  for (const char* wanted : {"; Path=/", "; HttpOnly", "; SameSite=Strict", "; Secure", "; Max-Age=3600"})
    EXPECT_THAT(cookie, HasSubstr(wanted));
  EXPECT_THAT(cookie, Not(HasSubstr("Domain")));
  EXPECT_THAT(set_cookie(SessionKind::portal, Transport::loopback, token, std::chrono::hours(1)),
              StartsWith("postrider-portal="));
}

TEST(Cookies, TheTokenIsFoundAmongOthers) {
  const std::string cookie = "a=1; __Host-postrider-console=" + token + "; b=2";
  EXPECT_EQ(find_session_token(request({{"Cookie", cookie}, {"host", "hooks.example"}})), token);
  EXPECT_EQ(find_session_token(request({{"host", "hooks.example"}})), std::nullopt);
}

TEST(Cookies, ANameThatOtherHostsCanSetCountsOnLoopbackOnly) {
  const std::string cookie = "postrider-console=" + token;
  EXPECT_EQ(find_session_token(request({{"cookie", cookie}, {"host", "127.0.0.1:8090"}})), token);
  EXPECT_EQ(find_session_token(request({{"cookie", cookie}, {"host", "[::1]:8090"}})), token);
  EXPECT_EQ(find_session_token(request({{"cookie", cookie}, {"host", "hooks.example"}})), std::nullopt);
  EXPECT_EQ(find_session_token(request({{"cookie", cookie}, {"host", "127.0.0.1.evil.example"}})),
            std::nullopt);
}

TEST(Cookies, PagesOfThePortalUseTheirOwnSession) {
  const std::string other(43, 'p');
  const std::string cookie = "postrider-console=" + token + "; postrider-portal=" + other;
  EXPECT_EQ(find_session_token(request({{"cookie", cookie}, {"host", "localhost"}})), token);
  EXPECT_EQ(
      find_session_token(request({{"cookie", cookie}, {"host", "localhost"}, {"x-postrider-app", "portal"}})),
      other);
}

TEST(Cookies, AMalformedTokenIsNone) {
  for (const std::string& bad :
       {std::string(42, 't'), std::string(44, 't'), std::string(42, 't') + "!", std::string()})
    EXPECT_EQ(find_session_token(request({{"cookie", "postrider-console=" + bad}, {"host", "localhost"}})),
              std::nullopt);
}

TEST(Origins, OnlyOurOwnPagesMayChangeThings) {
  const std::string public_url = "https://hooks.example";
  const auto is_ours = [&](std::vector<http::Field> fields) {
    return is_from_our_pages(request(std::move(fields)), public_url);
  };
  EXPECT_TRUE(is_ours({{"origin", "https://hooks.example"}, {"host", "inner:8090"}}));
  EXPECT_TRUE(is_ours({{"origin", "http://127.0.0.1:8090"}, {"host", "127.0.0.1:8090"}}));
  EXPECT_TRUE(
      is_ours({{"origin", "https://hooks.example"}, {"sec-fetch-site", "same-origin"}, {"host", "h"}}));
  EXPECT_FALSE(is_ours({{"host", "127.0.0.1:8090"}})) << "no Origin";
  EXPECT_FALSE(is_ours({{"origin", "null"}, {"host", "127.0.0.1:8090"}}));
  EXPECT_FALSE(is_ours({{"origin", "https://evil.example"}, {"host", "hooks.example"}}));
  EXPECT_FALSE(is_ours({{"origin", "https://hooks.example.evil"}, {"host", "hooks.example"}}));
  EXPECT_FALSE(
      is_ours({{"origin", "https://hooks.example"}, {"sec-fetch-site", "same-site"}, {"host", "h"}}));
}

TEST(Origins, PlainHttpIsForLoopbackOnly) {
  const auto transport = [](std::string origin) {
    return visit_of(request({{"origin", origin}, {"host", "any"}}), "http://127.0.0.1:8090").transport;
  };
  EXPECT_EQ(transport("https://hooks.example"), Transport::https);
  EXPECT_EQ(transport("http://localhost:8090"), Transport::loopback);
  EXPECT_EQ(transport("http://[::1]:8090"), Transport::loopback);
  EXPECT_EQ(transport("http://hooks.example"), Transport::insecure);
  EXPECT_EQ(transport("http://localhost.evil.example"), Transport::insecure);
  EXPECT_EQ(transport("http://[::1"), Transport::insecure);
}

TEST(Tokens, AreLongRandomAndCheckedByForm) {
  const std::string made = generate_token();
  EXPECT_TRUE(is_token(made));
  EXPECT_NE(made, generate_token());
  EXPECT_NE(csrf_token(made), made);
  EXPECT_EQ(csrf_token(made), csrf_token(made));
}

}  // namespace
}  // namespace postrider::web
