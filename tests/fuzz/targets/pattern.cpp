// Event types and patterns: every pattern of a type is one, is no longer than it may be, and matches it.
#include <algorithm>

#include "fuzz.hpp"
#include "postrider/model/event_type.hpp"

using namespace postrider;

void fuzz_one(std::string_view input) {
  if (!model::is_event_type(input)) return;
  CHECK(input.size() <= model::kEventTypeMax && model::is_pattern(input));
  const auto patterns = model::patterns_matching(input);
  CHECK(patterns.size() == static_cast<size_t>(std::count(input.begin(), input.end(), '.')) + 2);
  for (const auto& pattern : patterns) {
    CHECK(model::is_pattern(pattern));
    if (pattern == input || pattern == "*") continue;
    CHECK(pattern.ends_with(".*"));
    CHECK(input.starts_with(std::string_view(pattern).substr(0, pattern.size() - 1)));
  }
}
