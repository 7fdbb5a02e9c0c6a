#include "postrider/outbox/publisher_sink.hpp"

namespace postrider::outbox {

namespace {

SinkResult outcome_of(const publish::PublishResult& answer) {
  const auto* rejected = std::get_if<publish::Rejected>(&answer);
  if (rejected == nullptr) return {SinkResult::Kind::published, {}};
  using Reason = publish::Rejected::Reason;
  if (rejected->reason == Reason::too_fast) return {SinkResult::Kind::throttled, rejected->detail};
  const bool is_passing = rejected->reason == Reason::overloaded || rejected->reason == Reason::unavailable;
  return {is_passing ? SinkResult::Kind::later : SinkResult::Kind::rejected, rejected->detail};
}

}  // namespace

runtime::Task<std::vector<SinkResult>> PublisherSink::send(std::vector<publish::NewEvent> events) {
  const auto answers = co_await publisher_.publish_all(std::move(events));
  std::vector<SinkResult> outcomes;
  for (const auto& answer : answers) outcomes.push_back(outcome_of(answer));
  co_return outcomes;
}

}  // namespace postrider::outbox
