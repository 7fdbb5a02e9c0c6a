#include "postrider/http/retry_after.hpp"

#include <gtest/gtest.h>

namespace postrider::http {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

const base::Timestamp now = *base::parse_rfc3339("2026-04-08T10:15:30Z");

struct RetryAfterCase {
  std::string_view value;
  std::optional<seconds> expected;
};

TEST(ParseRetryAfter, ReadsSecondsAndAllThreeDateForms) {
  const RetryAfterCase cases[] = {
      {"0", seconds(0)},
      {"120", seconds(120)},
      {"  120\t", seconds(120)},
      {"86401", hours(24)},
      {"99999999999999999999999", hours(24)},
      {"Wed, 08 Apr 2026 10:16:30 GMT", seconds(60)},
      {"Wednesday, 08-Apr-26 10:16:30 GMT", seconds(60)},
      {"Wed Apr  8 10:16:30 2026", seconds(60)},
      {"Thu, 01 Jan 1970 00:00:00 GMT", seconds(0)},
      {"Sunday, 06-Nov-94 08:49:37 GMT", seconds(0)},
      {"Fri, 08 Apr 2033 10:16:30 GMT", hours(24)},
      {"", std::nullopt},
      {"soon", std::nullopt},
      {"-5", std::nullopt},
      {"1.5", std::nullopt},
      {"120 seconds", std::nullopt},
      {"Wed, 31 Feb 2026 10:16:30 GMT", std::nullopt},
      {"Wed, 08 Apr 2026 10:16:30", std::nullopt},
      {"Wed, 08 Apr 2026 10:16:30 PST", std::nullopt},
      {"Wed, 08 Apr 2026 25:16:30 GMT", std::nullopt},
      {"Wed, 08 Apr 20261 10:16:30 GMT", std::nullopt},
      {"Wed, 08 Apr 2026 10:16:30 GMT extra", std::nullopt},
      {"2026-04-08T10:16:30Z", std::nullopt},
      {",,,,,,,", std::nullopt},
  };
  for (const RetryAfterCase& c : cases) EXPECT_EQ(parse_retry_after(c.value, now), c.expected) << c.value;
}

}  // namespace
}  // namespace postrider::http
