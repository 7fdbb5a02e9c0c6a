// Calls that wait in the database until the test lets them go.
#pragma once

#include <future>
#include <string>
#include <vector>

#include "postrider/api/pgtest_fixture.hpp"

namespace postrider::api {

class StuckCalls {
 public:
  explicit StuckCalls(ApiTest& test) : test_(test) {
    test_.database.sql("begin");
    test_.database.sql("lock table postrider.audit in access exclusive mode");
  }
  ~StuckCalls() { release(); }
  StuckCalls(const StuckCalls&) = delete;
  StuckCalls& operator=(const StuckCalls&) = delete;

  void start(const std::string& key, int count) {
    for (int i = 0; i < count; ++i)
      calls_.push_back(std::async(std::launch::async, [this, key] {
        return test_.server->send({"GET", "/v1/audit", "", key}).status;
      }));
  }
  void wait_until_stuck(int count) {
    test_.database.wait_for("select count(*) >= " + std::to_string(count) +
                                " from pg_locks where not granted and relation = 'postrider.audit'::regclass",
                            "t");
  }
  // Lets them go and returns their statuses.
  std::vector<int> release() {
    std::vector<int> statuses;
    if (is_locked_) test_.database.sql("rollback");
    is_locked_ = false;
    for (auto& call : calls_) statuses.push_back(call.get());
    calls_.clear();
    return statuses;
  }

 private:
  ApiTest& test_;
  bool is_locked_ = true;
  std::vector<std::future<int>> calls_;
};

}  // namespace postrider::api
