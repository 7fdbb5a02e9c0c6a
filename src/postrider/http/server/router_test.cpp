#include "postrider/http/server/router.hpp"

#include <gtest/gtest.h>

#include "postrider/http/server/problem.hpp"
#include "postrider/http/server/testing.hpp"

namespace postrider::http {
namespace {

using runtime::Task;

Task<Response> say(std::string text) {
  co_return Response::text(200, std::move(text));
}

// Each route returns its pattern and the values of its parameters.
void add_routes(Router& router) {
  const auto add = [&](Method method, std::string pattern, size_t body_bytes_max = 0) {
    auto handle = [pattern](Request& request) {
      std::string text = pattern;
      for (const auto& [name, value] : request.path_parameters) text += " " + name + "=" + value;
      return say(std::move(text));
    };
    router.add({method, pattern, std::move(handle), body_bytes_max});
  };
  add(Method::get, "/");
  add(Method::get, "/v1/tenants/{tenant}");
  add(Method::delete_, "/v1/tenants/{tenant}");
  add(Method::post, "/v1/tenants/{tenant}/events");
  add(Method::get, "/v1/tenants/{tenant}/events/{event}");
  add(Method::post, "/v1/events/batch", 16);
  add(Method::get, "/v1/{kind}/summary");
  add(Method::get, "/v1/tenants/all/summary");
  add(Method::get, "/console/{path*}");
}

class Routes : public testing::Test {
 protected:
  Routes() { add_routes(router_); }

  Router router_;
  TestServer server_{router_};
  TestClient client_{server_.port()};

  TestResponse ask(std::string_view method, std::string_view target) {
    client_.send(std::string(method) + " " + std::string(target) + " HTTP/1.1\r\nHost: h\r\n\r\n");
    return client_.receive(method == "HEAD").value();
  }
};

TEST_F(Routes, AreFoundByMethodAndPath) {
  EXPECT_EQ(ask("GET", "/").body, "/");
  EXPECT_EQ(ask("GET", "/v1/tenants/t1?x=1").body, "/v1/tenants/{tenant} tenant=t1");
  EXPECT_EQ(ask("GET", "/v1/tenants/t1/events/e2").body,
            "/v1/tenants/{tenant}/events/{event} tenant=t1 event=e2");
  EXPECT_EQ(ask("POST", "/v1/tenants/t1/events").body, "/v1/tenants/{tenant}/events tenant=t1");
}

TEST_F(Routes, PreferLiteralsButFindTheOther) {
  EXPECT_EQ(ask("GET", "/v1/tenants/all/summary").body, "/v1/tenants/all/summary");
  EXPECT_EQ(ask("GET", "/v1/tenants/all").body, "/v1/tenants/{tenant} tenant=all");
  EXPECT_EQ(ask("GET", "/v1/dead-letters/summary").body, "/v1/{kind}/summary kind=dead-letters");
}

TEST_F(Routes, DecodeTheirParametersAfterTheyWereSplit) {
  EXPECT_EQ(ask("GET", "/v1/tenants/a%2Fb%20c").body, "/v1/tenants/{tenant} tenant=a/b c");
  EXPECT_EQ(ask("GET", "/v1/tenants/a+b").body, "/v1/tenants/{tenant} tenant=a+b");
}

TEST_F(Routes, MayTakeTheRestOfThePath) {
  EXPECT_EQ(ask("GET", "/console/assets/app.js").body, "/console/{path*} path=assets/app.js");
  EXPECT_EQ(ask("GET", "/console/").status, 404);
}

TEST_F(Routes, ThatDoNotExistAre404) {
  for (const char* path : {"/v1", "/v1/", "/v1/tenants/", "/v1/tenants//events", "/v2/x", "//",
                           "/v1/tenants/t/x/y", "/v1/%74enants/t"}) {
    const TestResponse answer = ask("GET", path);
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_EQ(answer.header("content-type"), "application/problem+json");
  }
}

TEST_F(Routes, WithAnotherMethodAre405WithAllow) {
  const TestResponse answer = ask("PATCH", "/v1/tenants/t1");
  EXPECT_EQ(answer.status, 405);
  EXPECT_EQ(answer.header("allow"), "GET, HEAD, DELETE, OPTIONS");
  EXPECT_EQ(ask("get", "/v1/tenants/t1").status, 405);
  EXPECT_EQ(ask("BREW", "/v1/tenants/t1").status, 405);
  EXPECT_EQ(ask("GET", "/v1/tenants/t1/events").header("allow"), "POST, OPTIONS");
}

TEST_F(Routes, TellTheirMethodsToOptions) {
  const TestResponse answer = ask("OPTIONS", "/v1/tenants/t1");
  EXPECT_EQ(answer.status, 204);
  EXPECT_EQ(answer.header("allow"), "GET, HEAD, DELETE, OPTIONS");
  EXPECT_EQ(ask("OPTIONS", "*").status, 204);
}

TEST_F(Routes, AnswerHeadAsGetWithoutABody) {
  EXPECT_EQ(ask("HEAD", "/v1/tenants/t1").status, 200);
  EXPECT_EQ(ask("HEAD", "/v1/tenants/t1/events").status, 405);
}

TEST_F(Routes, HaveTheirOwnBodyLimits) {
  client_.send("POST /v1/events/batch HTTP/1.1\r\nHost: h\r\nContent-Length: 17\r\n\r\n");
  EXPECT_EQ(client_.receive()->status, 413);
}

TEST_F(Routes, AreListed) {
  const auto routes = router_.routes();
  ASSERT_EQ(routes.size(), 9u);
  EXPECT_EQ(routes[3].pattern, "/v1/tenants/{tenant}/events");
  EXPECT_EQ(routes[3].method, Method::post);
}

TEST(Problems, SayWhatIsWrongAndWhere) {
  const Response response = problem({.status = 422,
                                     .type = "invalid-endpoint",
                                     .detail = "The \"url\" is wrong.",
                                     .errors = {{"/url", "not allowed"}, {"/max_attempts", "at most 50"}},
                                     .retry_after = std::chrono::seconds(7)},
                                    "req_1");
  EXPECT_EQ(
      response.body,
      R"({"type":"urn:postrider:problem:invalid-endpoint","title":"Unprocessable Content","status":422,)"
      R"("detail":"The \"url\" is wrong.","request_id":"req_1",)"
      R"("errors":[{"pointer":"/url","detail":"not allowed"},{"pointer":"/max_attempts","detail":"at most 50"}]})");
  EXPECT_EQ(response.headers.at(0).second, "7");
}

TEST(Problems, HaveATypeAndADetailByStatus) {
  EXPECT_EQ(
      problem({.status = 404}, "r").body,
      R"({"type":"urn:postrider:problem:not-found","title":"Not Found","status":404,"detail":"Not Found",)"
      R"("request_id":"r"})");
}

}  // namespace
}  // namespace postrider::http
