#include "postrider/delivery/attempt/retry_schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postrider::delivery {
namespace {

using std::chrono::milliseconds;

struct GoodSchedule {
  std::string_view json;
  std::vector<int> delays_ms;  // after the first attempts
};

TEST(RetrySchedule, ReadsListsAndFormulas) {
  const GoodSchedule cases[] = {
      {"null", {30'000, 120'000, 600'000, 1'800'000, 7'200'000, 21'600'000, 86'400'000, 86'400'000}},
      {"[5]", {5'000, 5'000, 5'000}},
      {"[0, 1, 2.5]", {0, 1'000, 2'500, 2'500}},
      {"[604800]", {604'800'000}},
      {R"({"base_seconds": 5, "factor": 3, "cap_seconds": 100})", {5'000, 15'000, 45'000, 100'000, 100'000}},
      {R"({"base_seconds": 0.5})", {500, 1'000, 2'000, 4'000}},
      {R"({"base_seconds": 7, "factor": 1})", {7'000, 7'000, 7'000}},
      {R"({"base_seconds": 100, "cap_seconds": 10})", {10'000, 10'000}},
  };
  for (const GoodSchedule& c : cases) {
    const auto schedule = RetrySchedule::from_json(c.json);
    ASSERT_TRUE(schedule.ok()) << c.json << ": " << schedule.error();
    for (size_t i = 0; i < c.delays_ms.size(); ++i)
      EXPECT_EQ(schedule->delay_after(static_cast<int>(i) + 1), milliseconds(c.delays_ms[i]))
          << c.json << " " << i;
  }
}

TEST(RetrySchedule, TheLastDelayRepeatsForever) {
  EXPECT_EQ(RetrySchedule().delay_after(1'000'000), std::chrono::hours(24));
  const auto slow_growth = RetrySchedule::from_json(R"({"base_seconds": 1, "factor": 1.0001})");
  EXPECT_LT(slow_growth->delay_after(1'000'000), std::chrono::seconds(2));
}

TEST(RetrySchedule, SaysWhatIsWrong) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "must be JSON"},
      {"[1,", "must be JSON"},
      {"[]", "at least one"},
      {"\"fast\"", "must be a list of seconds or an object"},
      {"7", "must be a list of seconds or an object"},
      {"[-1]", "from 0 to 604800"},
      {"[604801]", "from 0 to 604800"},
      {"[0e410]", "from 0 to 604800"},
      {"[1, \"2\"]", "from 0 to 604800"},
      {"[1, null]", "from 0 to 604800"},
      {"{}", "base_seconds above 0"},
      {R"({"base_seconds": 0})", "base_seconds above 0"},
      {R"({"base_seconds": "5"})", "base_seconds above 0"},
      {R"({"base_seconds": 5, "factor": 0.5})", "factor from 1 to 100"},
      {R"({"base_seconds": 5, "factor": null})", "factor from 1 to 100"},
      {R"({"base_seconds": 5, "cap_seconds": 0})", "cap_seconds above 0"},
      {R"({"base_seconds": 5, "cap": 7})", "unknown field \"cap\""},
  };
  for (const auto& [json, says] : cases) {
    const auto schedule = RetrySchedule::from_json(json);
    ASSERT_FALSE(schedule.ok()) << json;
    EXPECT_THAT(schedule.error(), testing::HasSubstr(std::string(says))) << json;
  }
  std::string long_list = "[1";
  for (size_t i = 0; i < RetrySchedule::delays_max; ++i) long_list += ",1";
  EXPECT_FALSE(RetrySchedule::from_json(long_list + "]").ok());
}

}  // namespace
}  // namespace postrider::delivery
