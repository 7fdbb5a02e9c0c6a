#include "postrider/inbox/source_keeper.hpp"

#include <utility>

#include "postrider/telemetry/log.hpp"

namespace postrider::inbox {

namespace {

using registry::RefusalKind;
using runtime::Task;

std::string describe(const registry::Refusal& refusal) {
  switch (refusal.kind) {
    case RefusalKind::unknown_forward_tenant:
      return "the tenant that it forwards to does not exist yet";
    case RefusalKind::reserved_tenant:
      return "the tenant that it forwards to belongs to postrider itself";
    case RefusalKind::source_exists:
      return "it " + refusal.detail + ", which cannot be changed: delete it, or choose another id";
    default:
      return refusal.detail;
  }
}

}  // namespace

SourceKeeper::SourceKeeper(runtime::Loop& loop, pg::Link& link, const registry::Context& context,
                           std::vector<ConfiguredSource> sources)
    : link_(link), context_(context), left_(std::move(sources)), wakeup_(loop) {}

// The same reason is told once, not every few seconds.
void SourceKeeper::report(const SourceId& id, const std::string& why) {
  if (reported_[id] == why) return;
  reported_[id] = why;
  telemetry::log_warn("source_not_applied").field("source", id).field("error", why);
}

Task<void> SourceKeeper::apply_at_start(base::SteadyTime until) {
  if (left_.empty()) co_return;
  try {
    co_await link_.wait_up(until);
  } catch (const pg::Error&) {  // said by the pass, for each source
  }
  auto pass = run_once();
  co_await pass;
  tasks_.spawn(run());
}

Task<void> SourceKeeper::run_once() {
  std::vector<ConfiguredSource> failed;
  for (ConfiguredSource& source : left_) {
    std::string why;
    try {
      auto applying = apply_source(link_, context_, source);
      const std::optional<registry::Refusal> refusal = co_await applying;
      if (refusal) why = describe(*refusal);
    } catch (const pg::Error& error) {
      why = error.what();
    }
    if (why.empty()) continue;
    report(source.id, why);
    failed.push_back(std::move(source));
  }
  left_ = std::move(failed);
}

Task<void> SourceKeeper::run() {
  while (!is_stopping_ && !left_.empty()) {
    co_await wakeup_.wait_for(kInterval);
    if (is_stopping_) break;
    auto pass = run_once();
    co_await pass;
  }
}

Task<void> SourceKeeper::stop() {
  is_stopping_ = true;
  wakeup_.notify();
  co_await tasks_.join();
}

}  // namespace postrider::inbox
