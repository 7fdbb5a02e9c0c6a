#include "postrider/http/server/cors.hpp"

#include <gtest/gtest.h>

#include "postrider/http/server/router.hpp"
#include "postrider/runtime/loop.hpp"

namespace postrider::http {
namespace {

runtime::Task<Response> say_hello() {
  co_return Response::json(200, "{}");
}

class CorsTest : public testing::Test {
 protected:
  CorsTest() {
    router_.add({Method::get, "/v1/x", [](Request&) { return say_hello(); }});
  }

  Response ask(std::vector<std::string> origins, Method method, std::vector<Field> fields) {
    Cors cors(router_, std::move(origins));
    Request request;
    request.method = method;
    request.path = "/v1/x";
    request.fields = std::move(fields);
    Response response;
    runtime::Loop loop;
    runtime::TaskGroup tasks;
    loop.post([&] { tasks.spawn(run(cors, request, response, loop)); });
    loop.run();
    return response;
  }

  static runtime::Task<void> run(Cors& cors, Request& request, Response& response, runtime::Loop& loop) {
    auto handling = cors.handle(request);
    response = co_await handling;
    loop.stop();
  }

  static std::string value(const Response& response, std::string_view name) {
    for (const auto& [field, text] : response.headers)
      if (field == name) return text;
    return "-";
  }

  Router router_;
};

TEST_F(CorsTest, is_off_without_origins) {
  const Response response = ask({}, Method::get, {{"origin", "https://app.example"}});
  EXPECT_EQ(value(response, "access-control-allow-origin"), "-");
  EXPECT_EQ(value(response, "vary"), "-");
}

TEST_F(CorsTest, allows_the_named_origins_and_no_others) {
  const std::vector<std::string> origins{"https://app.example", "https://b.example"};
  EXPECT_EQ(
      value(ask(origins, Method::get, {{"origin", "https://b.example"}}), "access-control-allow-origin"),
      "https://b.example");
  for (const auto* other :
       {"https://evil.example", "https://app.example.evil", "http://app.example", "null"}) {
    const Response rejected = ask(origins, Method::get, {{"origin", other}});
    EXPECT_EQ(value(rejected, "access-control-allow-origin"), "-") << other;
    EXPECT_EQ(value(rejected, "vary"), "origin");
  }
}

TEST_F(CorsTest, answers_a_preflight) {
  const Response response =
      ask({"https://app.example"}, Method::options,
          {{"origin", "https://app.example"}, {"access-control-request-method", "POST"}});
  EXPECT_EQ(response.status, 204);
  EXPECT_EQ(value(response, "access-control-allow-origin"), "https://app.example");
  EXPECT_NE(value(response, "access-control-allow-headers").find("authorization"), std::string::npos);
  EXPECT_EQ(value(response, "access-control-allow-credentials"), "-");
}

}  // namespace
}  // namespace postrider::http
