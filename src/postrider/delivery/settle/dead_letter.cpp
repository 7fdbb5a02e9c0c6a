#include "postrider/delivery/settle/dead_letter.hpp"

namespace postrider::delivery {

namespace {

Ending without_attempt(Cause cause, base::Timestamp now) {
  Ending ending;
  ending.verdict.kind = Verdict::Kind::dead_letter;
  ending.verdict.cause = cause;
  ending.verdict.signal = Verdict::Signal::neutral;
  ending.facts.is_exchange = false;
  ending.facts.started_at = now;
  return ending;
}

}  // namespace

Ending expired(base::Timestamp now) {
  Ending ending = without_attempt(Cause::expired, now);
  ending.facts.error_detail = "expired: not delivered before its deadline";
  return ending;
}

Ending body_missing(base::Timestamp now) {
  Ending ending = without_attempt(Cause::expired, now);
  ending.facts.error = "body_missing";
  ending.facts.error_detail = "the event is not in the database any more";
  return ending;
}

}  // namespace postrider::delivery
