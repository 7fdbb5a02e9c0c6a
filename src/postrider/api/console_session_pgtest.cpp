// Browsers: signing in and out, what a session may do, and requests that other sites forge.
#include "postrider/api/pgtest_fixture.hpp"

namespace postrider::api {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string kOurs = "origin: https://test\r\n";  // requests of this fixture have `host: test`

struct ConsoleSession : ApiTest {
  struct Browser {
    std::string cookie, csrf;
  };
  Reply sign_in_with(const std::string& body, const std::string& headers = kOurs) {
    return server->send(
        {.method = "POST", .target = "/console/session", .body = body, .extra_headers = headers});
  }
  static std::string cookie_of(const Reply& answer) {
    const std::string set = answer.header("set-cookie").value_or("");
    return "cookie: " + set.substr(0, set.find(';')) + "\r\n";
  }
  // A customer's key opens the portal, whose pages name themselves.
  Browser sign_in_to_portal(const std::string& key) {
    const Reply answer = sign_in_with(R"({"key":")" + key + "\"}");
    EXPECT_EQ(answer.at("/path"), "/portal") << answer.body;
    Browser browser{cookie_of(answer) + "x-postrider-app: portal\r\n", ""};
    browser.csrf = "x-postrider-csrf: " + get_with(browser, "/v1/me").at("/csrf_token") + "\r\n";
    return browser;
  }
  Browser sign_in(const std::string& key) {
    const Reply answer = sign_in_with(R"({"key":")" + key + "\"}");
    EXPECT_EQ(answer.status, 200) << answer.body;
    Browser browser{cookie_of(answer), ""};
    const Reply me = get_with(browser, "/v1/me");
    EXPECT_EQ(me.status, 200) << me.body;
    browser.csrf = "x-postrider-csrf: " + me.at("/csrf_token") + "\r\n";
    return browser;
  }
  Reply get_with(const Browser& browser, const std::string& target) {
    return server->send({.method = "GET", .target = target, .extra_headers = browser.cookie});
  }
  Reply change(const std::string& headers, const std::string& method = "POST",
               const std::string& target = "/v1/tenants", const std::string& body = R"({"id":"forged"})") {
    return server->send({.method = method, .target = target, .body = body, .extra_headers = headers});
  }
};

TEST_F(ConsoleSession, AKeyOpensASessionWithItsRights) {
  const Reply opened = sign_in_with(R"({"key":")" + make_key("reader") + "\"}");
  ASSERT_EQ(opened.status, 200) << opened.body;
  EXPECT_EQ(opened.at("/path"), "/console");
  EXPECT_EQ(opened.header("cache-control"), "no-store");
  EXPECT_THAT(opened.header("set-cookie").value_or(""), StartsWith("__Host-postrider-console="));
  const Reply me = get_with({cookie_of(opened), ""}, "/v1/me");
  EXPECT_EQ(me.at("/kind"), "console");
  EXPECT_EQ(me.at("/role"), "reader");
  EXPECT_EQ(me.header("cache-control"), "no-store");
  EXPECT_EQ(get_with({cookie_of(opened), ""}, "/v1/keys").status, 403);
}

TEST_F(ConsoleSession, ATokenThatOnlyReadsOpensASessionThatOnlyReads) {
  make_acme();
  const std::string path = make_endpoint();
  const Reply token = post("/v1/tenants/acme/tokens", R"({"expires_in_seconds": 600, "access": "read"})");
  const Browser browser = sign_in_to_portal(token.at("/token"));
  EXPECT_EQ(get_with(browser, path).status, 200);
  const Reply denied = change(browser.cookie + browser.csrf + kOurs, "POST", path + "/pause", "{}");
  EXPECT_EQ(denied.status, 403) << denied.body;
  EXPECT_EQ(get(path).at("/status"), "active");
}

TEST_F(ConsoleSession, WrongKeysAndPublishersDoNotSignIn) {
  EXPECT_EQ(sign_in_with(R"({"key":"pr_wrong"})").status, 401);
  const Reply publisher = sign_in_with(R"({"key":")" + make_key("publisher") + "\"}");
  EXPECT_EQ(publisher.status, 403);
  EXPECT_THAT(publisher.at("/detail"), HasSubstr("publisher"));
  EXPECT_EQ(sign_in_with("{}").status, 422);
  EXPECT_EQ(sign_in_with(R"({"key":"a","link":"b"})").status, 422);
}

TEST_F(ConsoleSession, AnotherSiteAndPlainHttpCannotSignIn) {
  const std::string body = R"({"key":")" + admin_key + "\"}";
  EXPECT_EQ(sign_in_with(body, "origin: https://evil.example\r\n").at("/type"),
            "urn:postrider:problem:forbidden");
  EXPECT_EQ(sign_in_with(body, "origin: http://test\r\n").at("/type"),
            "urn:postrider:problem:insecure-transport");
}

TEST_F(ConsoleSession, AChangeMustComeFromOurOwnPages) {
  const Browser browser = sign_in(admin_key);
  const std::string forged[] = {
      browser.cookie,                                                      // a form of another site
      browser.cookie + kOurs,                                              // without the token
      browser.cookie + kOurs + "x-postrider-csrf: wrong\r\n",              // with a wrong one
      browser.cookie + browser.csrf,                                       // without Origin
      browser.cookie + browser.csrf + "origin: https://evil.example\r\n",  // another site
      browser.cookie + browser.csrf + kOurs + "sec-fetch-site: same-site\r\n",
  };
  for (const std::string& headers : forged) {
    const Reply answer = change(headers);
    EXPECT_EQ(answer.status, 403) << headers;
    EXPECT_EQ(answer.at("/type"), "urn:postrider:problem:cross-site-request") << headers;
  }
  EXPECT_EQ(get("/v1/tenants/forged").status, 404);
  EXPECT_EQ(change(browser.cookie + browser.csrf + kOurs).status, 201);
}

TEST_F(ConsoleSession, TheAuditLogNamesTheConsole) {
  const Browser browser = sign_in(admin_key);
  EXPECT_EQ(change(browser.cookie + browser.csrf + kOurs).status, 201);
  const Reply audit = get("/v1/audit?action=tenant.create");
  EXPECT_EQ(audit.at("/data/0/actor/kind"), "console");
  EXPECT_THAT(audit.at("/data/0/actor/id"), StartsWith("key_"));
}

TEST_F(ConsoleSession, EndsWithSignOutAndWithItsKey) {
  const Browser browser = sign_in(admin_key);
  const Reply out = change(browser.cookie + browser.csrf + kOurs, "DELETE", "/console/session", "");
  EXPECT_EQ(out.status, 204) << out.body;
  EXPECT_THAT(out.header("set-cookie").value_or(""), HasSubstr("Max-Age=0"));
  EXPECT_EQ(get_with(browser, "/v1/me").status, 401);

  const std::string key = make_key("operator");
  const Browser other = sign_in(key);
  const std::string id = get_with(other, "/v1/me").at("/key_id");
  EXPECT_EQ(remove("/v1/keys/" + id).status, 204);
  server->forget_cached();
  EXPECT_EQ(get_with(other, "/v1/me").status, 401);
}

TEST_F(ConsoleSession, EndsAfterItsTimeAndWithoutUse) {
  const Browser idle = sign_in(admin_key);
  database.sql("update postrider.session set last_seen_at = now() - interval '12 hours 1 minute'");
  server->forget_cached();
  EXPECT_EQ(get_with(idle, "/v1/me").status, 401);
  const Browser old = sign_in(admin_key);
  database.sql("update postrider.session set expires_at = now() - interval '1 second'");
  server->forget_cached();
  EXPECT_EQ(get_with(old, "/v1/me").status, 401);
}

TEST_F(ConsoleSession, SigningInAgainEndsTheEarlierSession) {
  const Browser first = sign_in(admin_key);
  const Reply again = sign_in_with(R"({"key":")" + admin_key + "\"}", kOurs + first.cookie);
  EXPECT_EQ(again.status, 200);
  server->forget_cached();
  EXPECT_EQ(get_with(first, "/v1/me").status, 401);
  EXPECT_EQ(get_with({cookie_of(again), ""}, "/v1/me").status, 200);
}

TEST_F(ConsoleSession, ALinkSignsInOnce) {
  const Reply made = post("/v1/console-links");
  ASSERT_EQ(made.status, 201) << made.body;
  const std::string url = made.at("/url");
  EXPECT_THAT(url, HasSubstr("/console/enter#l="));
  const std::string body = R"({"link":")" + url.substr(url.find("#l=") + 3) + "\"}";
  EXPECT_EQ(sign_in_with(body).status, 200);
  const Reply again = sign_in_with(body);
  EXPECT_EQ(again.status, 401);
  EXPECT_EQ(sign_in_with(R"({"link":"x"})").at("/detail"), again.at("/detail"));
  EXPECT_EQ(server->send({"POST", "/v1/console-links", "", make_key("publisher")}).status, 403);
}

TEST_F(ConsoleSession, AnExpiredLinkAndOneOfARevokedKeyDoNotWork) {
  const auto link_of = [&](const std::string& key) {
    const std::string url = server->send({"POST", "/v1/console-links", "", key}).at("/url");
    return R"({"link":")" + url.substr(url.find("#l=") + 3) + "\"}";
  };
  const std::string expired = link_of(admin_key);
  database.sql("update postrider.sign_in_link set expires_at = now()");
  EXPECT_EQ(sign_in_with(expired).status, 401);
  const std::string key = make_key("operator");
  const std::string of_revoked = link_of(key);
  database.sql("update postrider.api_key set revoked_at = now() where role = 'operator'");
  EXPECT_EQ(sign_in_with(of_revoked).status, 401);
}

TEST_F(ConsoleSession, ASessionTokenIsNoKeyAndAKeyIsNoSession) {
  const Browser browser = sign_in(admin_key);
  const std::string token = browser.cookie.substr(browser.cookie.find('=') + 1, 43);
  EXPECT_EQ(server->send({"GET", "/v1/me", "", token}).status, 401);
  EXPECT_EQ(get_with({"cookie: __Host-postrider-console=" + admin_key + "\r\n", ""}, "/v1/me").status, 401);
}

TEST_F(ConsoleSession, EveryAddressOfTheConsoleIsItsPage) {
  for (const char* target :
       {"/console", "/console/deliveries", "/console/tenants/a.b/deliveries/dlv_1?tab=x"}) {
    const Reply page = server->send({"GET", target});
    EXPECT_EQ(page.status, 200) << target;
    EXPECT_EQ(page.header("content-type"), "text/html; charset=utf-8");
    EXPECT_THAT(page.header("content-security-policy").value_or(""), HasSubstr("frame-ancestors 'none'"));
  }
  EXPECT_EQ(server->send({"GET", "/console/assets/other.js"}).status, 404);
  EXPECT_EQ(server->send({"GET", "/console/assets/../console.html"}).status, 404);
}

}  // namespace
}  // namespace postrider::api
