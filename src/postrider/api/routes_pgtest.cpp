#include "postrider/api/wire/routes.hpp"

#include "postrider/api/pgtest_fixture.hpp"
#include "support/run.hpp"

namespace postrider::api {
namespace {

using RoutesTest = ApiTest;

Task<Response> accept(Call&) {
  co_return Response::json(200, "{}");
}

Task<http::Admission> reject_all(Call& head) {
  if (!head.request.path.empty()) throw CallRejected({.status = 429, .type = "too-many-calls"});
  co_return http::Admission();
}

TEST_F(RoutesTest, ACallRejectedBeforeItsBodyIsReadGetsThatProblem) {
  Services services = server->api().services();
  http::Router router;
  Routes routes(router, services);
  routes.add(Method::post, "/large", Access::everyone, accept, {.admit = reject_all});
  http::Request head;
  head.method = Method::post;
  head.path = "/large";
  runtime::Loop loop;
  const http::Admission admission = support::run(loop, router.admit(head));
  ASSERT_TRUE(admission.rejection);
  EXPECT_EQ(admission.rejection->status, 429);
}

}  // namespace
}  // namespace postrider::api
