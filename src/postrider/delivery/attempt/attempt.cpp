#include "postrider/delivery/attempt/attempt.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "postrider/base/check.hpp"
#include "postrider/base/fail_point.hpp"
#include "postrider/base/text.hpp"
#include "postrider/delivery/attempt/sign.hpp"
#include "postrider/http/client/preview.hpp"
#include "postrider/http/client/response_headers.hpp"
#include "postrider/http/retry_after.hpp"

namespace postrider::delivery {

namespace {

int as_int(std::chrono::microseconds time) {
  return static_cast<int>(std::min<int64_t>(time.count(), std::numeric_limits<int>::max()));
}

int as_int(uint64_t bytes) {
  return static_cast<int>(std::min<uint64_t>(bytes, std::numeric_limits<int>::max()));
}

std::optional<int> phase(std::chrono::microseconds time) {
  return time.count() == 0 ? std::nullopt : std::optional(as_int(time));
}

AttemptResult blocked(std::string why, base::Timestamp started_at) {
  AttemptResult result;
  result.outcome = Blocked{};
  result.facts.started_at = started_at;
  result.facts.error = "blocked";
  result.facts.error_detail = std::move(why);
  return result;
}

}  // namespace

base::Result<std::string, std::string> attempt_headers(const LaneConfig& config, const QueueRow& row,
                                                       base::Timestamp now, std::string_view user_agent) {
  std::string headers;
  headers.reserve(512 + config.endpoint.header_lines.size());
  headers += "content-type: application/json\r\nuser-agent: ";
  headers += user_agent;
  headers += "\r\n";
  const std::string delivery_id = row.id().public_id();
  const SignInput input{
      .event_id = row.event->public_id,
      .delivery_id = delivery_id,
      .unix_seconds = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count(),
      .attempt = row.attempts + 1,
      .body = row.event->body};
  if (!append_signature_headers(headers, config.signer, input))
    return base::Failure<std::string>{"the event's ID has characters that are not allowed in a header"};
  const std::string& traceparent = row.event->traceparent;
  if (!traceparent.empty() && !http::append_header(headers, "traceparent", traceparent))
    return base::Failure<std::string>{
        "the event's traceparent has characters that are not allowed in a header"};
  headers += config.endpoint.header_lines;
  return headers;
}

namespace {

constexpr size_t kContentTypeBytesMax = 128;

void add_response(AttemptFacts& facts, http::ReceivedResponse& answer) {
  facts.status_code = answer.status;
  facts.bytes_received = as_int(answer.body_bytes);
  facts.is_truncated = !answer.is_complete || answer.body_bytes != answer.body_start.size();
  if (!answer.body_start.empty())
    facts.preview = http::redacted_preview(answer.body_start, !facts.is_truncated);
  if (!answer.content_type.empty()) {
    const bool is_clean =
        answer.content_type.size() <= kContentTypeBytesMax && base::is_storable(answer.content_type);
    facts.content_type =
        is_clean ? std::move(answer.content_type) : base::storable(answer.content_type, kContentTypeBytesMax);
  }
  if (answer.status >= 200 && answer.status <= 299) return;
  facts.response_headers = http::redacted_headers(answer.head);
  facts.error = "http_" + std::to_string(answer.status);
  facts.error_detail = "the endpoint responded with " + std::to_string(answer.status);
}

}  // namespace

AttemptFacts attempt_facts(http::Exchange exchange, base::Timestamp started_at) {
  AttemptFacts facts;
  facts.started_at = started_at;
  facts.lookup_us = phase(exchange.times.lookup);
  facts.connect_us = phase(exchange.times.connect);
  facts.tls_us = phase(exchange.times.tls);
  facts.send_us = phase(exchange.times.send);
  facts.first_byte_us = phase(exchange.times.first_byte);
  facts.total_us = as_int(exchange.times.total);
  if (exchange.remote) facts.address = exchange.remote->to_string();
  facts.bytes_sent = as_int(exchange.bytes_sent);
  facts.is_reused = exchange.is_reused;
  facts.is_resent = exchange.is_resent;
  if (auto* answer = std::get_if<http::ReceivedResponse>(&exchange.outcome)) {
    add_response(facts, *answer);
  } else {
    facts.error = std::string(http::to_string(exchange.failure()->error));
    facts.error_detail = exchange.failure()->detail;
  }
  return facts;
}

std::optional<Outcome> outcome_of(const http::Exchange& exchange, base::Timestamp now) {
  if (const http::ReceivedResponse* answer = exchange.answer())
    return Responded{.status = answer->status,
                     .retry_after = http::parse_retry_after(answer->retry_after, now)};
  switch (const http::NetError error = exchange.failure()->error) {
    case http::NetError::blocked:
      return Blocked{};
    case http::NetError::local_failure:
      return NotAttempted{};
    case http::NetError::canceled:
      return std::nullopt;
    default:
      return Unreachable{error};
  }
}

runtime::Task<AttemptResult> attempt(AttemptTools tools, const LaneConfig& config, const QueueRow& row) {
  CHECK(row.event != nullptr);
  const auto started_at = tools.clock.now();
  if (!config.url) co_return blocked("the URL is not one that postrider can send to", started_at);
  const auto headers = attempt_headers(config, row, started_at, tools.user_agent);
  if (!headers) co_return blocked(headers.error(), started_at);
  base::reach("attempt.signed");
  const http::OutboundRequest request{
      .url = *config.url,
      .headers = *headers,
      .body = row.event->body,
      .profile = config.profile.get(),
      .deadline = base::BootClock::now() + std::chrono::milliseconds(config.endpoint.timeout_ms),
      .response_body_bytes_max = tools.response_bytes_max};
  http::Exchange exchange = co_await tools.client.send(request);
  base::reach("attempt.answered");
  AttemptResult result;
  result.outcome = outcome_of(exchange, tools.clock.now());
  if (const auto* failure = exchange.failure()) result.blocked_reason = failure->blocked_reason;
  result.facts = attempt_facts(std::move(exchange), started_at);
  result.facts.url_version = config.endpoint.url_version;
  co_return result;
}

}  // namespace postrider::delivery
