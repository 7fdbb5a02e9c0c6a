// Retry-After and retry schedules: whatever is said, the wait is bounded.
#include "postrider/http/retry_after.hpp"
#include "fuzz.hpp"
#include "postrider/delivery/attempt/retry_schedule.hpp"

using namespace postrider;

void fuzz_one(std::string_view input) {
  const base::Timestamp now(std::chrono::seconds(1'700'000'000));
  if (const auto wait = http::parse_retry_after(input, now))
    CHECK(*wait >= std::chrono::seconds(0) && *wait <= http::kRetryAfterMax);
  const auto schedule = delivery::RetrySchedule::from_json(input);
  if (!schedule) {
    CHECK(!schedule.error().empty());
    return;
  }
  for (const int attempt : {1, 2, 7, 99, 1'000'000}) {
    const auto delay = schedule->delay_after(attempt);
    CHECK(delay.count() >= 0 && delay <= delivery::RetrySchedule::delay_max);
  }
}
