#include "postrider/outbox/publisher_sink.hpp"

namespace postrider::outbox {

namespace {

Outcome outcome_of(const publish::PublishAnswer& answer) {
  const auto* refused = std::get_if<publish::Refused>(&answer);
  if (refused == nullptr) return {Outcome::Kind::published, {}};
  using Reason = publish::Refused::Reason;
  const bool is_passing = refused->reason == Reason::too_fast || refused->reason == Reason::overloaded ||
                          refused->reason == Reason::unavailable;
  return {is_passing ? Outcome::Kind::later : Outcome::Kind::refused, refused->detail};
}

}  // namespace

runtime::Task<std::vector<Outcome>> PublisherSink::send(std::vector<publish::NewEvent> events) {
  auto task = publisher_.publish_all(std::move(events));
  const auto answers = co_await task;
  std::vector<Outcome> outcomes;
  for (const auto& answer : answers) outcomes.push_back(outcome_of(answer));
  co_return outcomes;
}

}  // namespace postrider::outbox
