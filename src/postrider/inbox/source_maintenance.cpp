#include "postrider/inbox/source_maintenance.hpp"

#include <utility>

#include "postrider/telemetry/log.hpp"

namespace postrider::inbox {

namespace {

using registry::RejectionKind;
using runtime::Task;

std::string describe(const registry::Rejection& rejection) {
  switch (rejection.kind) {
    case RejectionKind::unknown_forward_tenant:
      return "the tenant that it forwards to does not exist yet";
    case RejectionKind::reserved_tenant:
      return "the tenant that it forwards to belongs to postrider itself";
    case RejectionKind::source_exists:
      return "it " + rejection.detail + ", which cannot be changed: delete it, or choose another id";
    default:
      return rejection.detail;
  }
}

}  // namespace

SourceMaintenance::SourceMaintenance(runtime::Loop& loop, pg::Link& link, const registry::Context& context,
                                     std::vector<ConfiguredSource> sources)
    : Service(loop), link_(link), context_(context), left_(std::move(sources)) {}

// Logs each reason once, not every few seconds.
void SourceMaintenance::report(const SourceId& id, const std::string& why) {
  if (reported_[id] == why) return;
  reported_[id] = why;
  telemetry::log_warn("source_not_applied").field("source", id).field("error", why);
}

Task<void> SourceMaintenance::apply_at_start(base::SteadyTime until) {
  if (left_.empty()) co_return;
  try {
    co_await link_.wait_up(until);
  } catch (const pg::Error&) {  // logged by the pass, for each source
  }
  co_await run_once();
  if (!left_.empty()) start();
}

Task<runtime::SteadyTime> SourceMaintenance::pass(runtime::SteadyTime) {
  std::vector<ConfiguredSource> failed;
  for (ConfiguredSource& source : left_) {
    std::string why;
    try {
      auto applying = apply_source(link_, context_, source);
      const std::optional<registry::Rejection> rejection = co_await applying;
      if (rejection) why = describe(*rejection);
    } catch (const pg::Error& error) {
      why = error.what();
    }
    if (why.empty()) continue;
    report(source.id, why);
    failed.push_back(std::move(source));
  }
  left_ = std::move(failed);
  const std::chrono::milliseconds pause = left_.empty() ? std::chrono::hours(24) : kInterval;
  co_return base::BootClock::now() + pause;
}

}  // namespace postrider::inbox
