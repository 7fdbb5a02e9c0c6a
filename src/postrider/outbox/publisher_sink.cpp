#include "postrider/outbox/publisher_sink.hpp"

namespace postrider::outbox {

namespace {

Outcome outcome_of(const publish::PublishResult& answer) {
  const auto* refused = std::get_if<publish::Rejected>(&answer);
  if (refused == nullptr) return {Outcome::Kind::published, {}};
  using Reason = publish::Rejected::Reason;
  if (refused->reason == Reason::too_fast) return {Outcome::Kind::throttled, refused->detail};
  const bool is_passing = refused->reason == Reason::overloaded || refused->reason == Reason::unavailable;
  return {is_passing ? Outcome::Kind::later : Outcome::Kind::refused, refused->detail};
}

}  // namespace

runtime::Task<std::vector<Outcome>> PublisherSink::send(std::vector<publish::NewEvent> events) {
  const auto answers = co_await publisher_.publish_all(std::move(events));
  std::vector<Outcome> outcomes;
  for (const auto& answer : answers) outcomes.push_back(outcome_of(answer));
  co_return outcomes;
}

}  // namespace postrider::outbox
