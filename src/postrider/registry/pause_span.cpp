#include "postrider/registry/pause_span.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

namespace postrider::registry {

PauseSpans merged(PauseSpans spans) {
  std::ranges::sort(spans, {}, &PauseSpan::since);
  PauseSpans result;
  for (PauseSpan& span : spans) {
    if (result.empty() || (result.back().until && *result.back().until < span.since)) {
      result.push_back(span);
    } else if (auto& last = result.back(); last.until && (!span.until || *span.until > *last.until)) {
      last.until = span.until;
    }
  }
  return result;
}

std::chrono::microseconds paused_between(std::span<const PauseSpan> spans, base::Timestamp from,
                                         base::Timestamp to) {
  std::chrono::microseconds paused{0};
  for (const auto& span : spans) {
    const auto start = std::max(span.since, from);
    const auto end = std::min(span.until.value_or(to), to);
    if (start < end) paused += end - start;
  }
  return paused;
}

base::Timestamp running_since(std::span<const PauseSpan> spans, std::chrono::microseconds running,
                              base::Timestamp now) {
  base::Timestamp from = now;
  for (const PauseSpan& span : std::views::reverse(spans)) {
    const base::Timestamp end = std::min(span.until.value_or(from), from);
    if (span.since >= end) continue;  // in the future
    if (from - end >= running) break;
    running -= from - end;
    from = span.since;
  }
  return from - running;
}

}  // namespace postrider::registry
