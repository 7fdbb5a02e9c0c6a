// The document and the router say the same, so neither can drift.
#include "postrider/api/openapi.hpp"

#include <boost/json/parse.hpp>
#include <map>

#include "postrider/api/pgtest_fixture.hpp"
#include "postrider/api/wire/routes.hpp"

namespace postrider::api {
namespace {

namespace json = boost::json;

// "get /v1/tenants" to its access.
using Operations = std::map<std::string, std::string>;

std::string lowered(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return lower;
}

Operations of_document() {
  Operations operations;
  const json::value document = json::parse(openapi_document());
  for (const auto& path : document.at("paths").as_object())
    for (const auto& method : path.value().as_object())
      operations[std::string(method.key()) + " " + std::string(path.key())] =
          std::string(method.value().at("x-access").as_string());
  return operations;
}

TEST_F(ApiTest, EveryRouteIsInTheDocumentAndTheOtherWayRound) {
  Operations of_router;
  for (const Routes::Entry& route : server->api().routes())
    of_router[lowered(http::method_name(route.method)) + " " + route.pattern] = label(route.access);
  const Operations documented = of_document();
  for (const auto& [operation, access] : of_router) {
    EXPECT_TRUE(documented.contains(operation)) << operation << " is not in src/postrider/api/openapi/*.json";
    if (documented.contains(operation)) EXPECT_EQ(documented.at(operation), access) << operation;
  }
  for (const auto& [operation, access] : documented)
    EXPECT_TRUE(of_router.contains(operation)) << operation << " is documented, but no route";
}

TEST_F(ApiTest, TheDocumentIsServedWithoutAKey) {
  const Reply response = server->send({"GET", "/openapi.json"});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.header("content-type"), "application/json");
  EXPECT_EQ(response.body, openapi_document());
}

TEST_F(ApiTest, ThePageBringsItsOwnFilesAndAllowsNoOthers) {
  const Reply page = server->send({"GET", "/docs"});
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.header("content-security-policy").value_or(""), testing::HasSubstr("default-src 'none'"));
  for (const char* file : {"/docs/docs.css", "/docs/docs.js", "/docs/icon.svg"}) {
    EXPECT_THAT(page.body, testing::HasSubstr(file));
    EXPECT_EQ(server->send({"GET", file}).status, 200);
  }
  EXPECT_EQ(server->send({"GET", "/docs/other"}).status, 404);
}

TEST_F(ApiTest, TheFrontPageLeadsToTheConsole) {
  const Reply front = server->send({"GET", "/"});
  EXPECT_EQ(front.status, 302);
  EXPECT_EQ(front.header("location"), "/console");
  EXPECT_EQ(server->send({"GET", "/docs/"}).body, server->send({"GET", "/docs"}).body);
  EXPECT_EQ(server->send({"GET", "/favicon.ico"}).header("content-type"), "image/svg+xml");
}

}  // namespace
}  // namespace postrider::api
