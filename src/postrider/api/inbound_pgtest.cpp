// POST /in/{source}, as far as it concerns others: what a sender may hold up.
#include <future>

#include "postrider/api/pgtest_fixture.hpp"

namespace postrider::api {
namespace {

using Inbound = ApiTest;

TEST_F(Inbound, ALargeBodyIsVerifiedWhileOtherRequestsAreAnswered) {
  const auto made = post("/v1/sources", R"({"id":"src","provider":"github","secret":"0123456789abcdef"})");
  ASSERT_EQ(made.status, 201) << made.body;
  const auto deliver = [this](size_t bytes) {
    const std::string signature = "x-hub-signature-256: sha256=" + std::string(64, 'a') + "\r\n";
    return server
        ->send({"POST", "/in/src", std::string(bytes, 'x'), "", "x-github-delivery: 1\r\n" + signature})
        .status;
  };
  std::promise<void> goes_on;
  server->worker().post([&goes_on] { goes_on.get_future().wait(); });
  std::future<int> large = std::async(std::launch::async, deliver, 200'000);
  const base::SteadyTime deadline = base::BootClock::now() + std::chrono::seconds(60);
  while (server->worker().waiting() == 0 && base::BootClock::now() < deadline) std::this_thread::yield();
  ASSERT_EQ(server->worker().waiting(), 1);
  EXPECT_EQ(deliver(1'000), 401);
  EXPECT_EQ(get("/v1/tenants").status, 200);
  goes_on.set_value();
  EXPECT_EQ(large.get(), 401);
}

}  // namespace
}  // namespace postrider::api
