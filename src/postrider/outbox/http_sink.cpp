#include "postrider/outbox/http_sink.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <charconv>

#include "postrider/base/json_writer.hpp"
#include "postrider/base/version.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::outbox {

namespace {

using runtime::Task;
using std::chrono::milliseconds;
namespace json = boost::json;

constexpr size_t kResponseBytesMax = 32 << 20;
constexpr milliseconds kWaitMax{1'000};  // within one call of send(): the relay has its lease to keep

bool is_passing(int64_t status) {
  return status == 408 || status == 425 || status == 429 || status >= 500;
}

// Of the whole batch: the server is another than meant, or does not let us in. The rows are not to blame.
bool is_about_us(int status) {
  return status == 401 || status == 403 || status == 404 || status == 405 || (status >= 300 && status < 400);
}

std::string detail_of(const json::object& problem) {
  const json::value* detail = problem.if_contains("detail");
  std::string text =
      detail != nullptr && detail->is_string() ? std::string(detail->get_string()) : "rejected";
  const json::value* errors = problem.if_contains("errors");
  if (errors == nullptr || !errors->is_array()) return text;
  for (const json::value& each : errors->get_array()) {
    const json::object* error = each.if_object();
    if (error == nullptr || !error->contains("detail") || !error->at("detail").is_string()) continue;
    const json::value* pointer = error->if_contains("pointer");
    if (pointer != nullptr && pointer->is_string()) text += " " + std::string(pointer->get_string());
    text += " " + std::string(error->at("detail").get_string());
  }
  return text;
}

SinkResult outcome_of(const json::value& item) {
  const json::object* object = item.if_object();
  const json::value* status = object == nullptr ? nullptr : object->if_contains("status");
  if (status == nullptr || !status->is_int64())
    return {SinkResult::Kind::later, "the response has no status"};
  const int64_t code = status->get_int64();
  if (code >= 200 && code < 300) return {SinkResult::Kind::published, {}};
  if (code == 429) return {SinkResult::Kind::throttled, detail_of(*object)};
  return {is_passing(code) ? SinkResult::Kind::later : SinkResult::Kind::rejected, detail_of(*object)};
}

std::string problem_text(const http::ReceivedResponse& answer) {
  json::error_code error;
  const json::value document = json::parse(answer.body_start, error);
  std::string text = "status " + std::to_string(answer.status);
  if (!error && document.is_object()) text += ": " + detail_of(document.get_object());
  return text;
}

}  // namespace

std::string item_json(const publish::NewEvent& event) {
  base::JsonObject item;
  item.add("tenant_id", event.tenant_id).add("type", event.type).add("id", event.id);
  if (event.version) item.add("version", event.version);
  if (event.occurred_at) item.add("occurred_at", event.occurred_at);
  if (event.subject) item.add("subject", event.subject);
  if (!event.traceparent.empty()) item.add("traceparent", event.traceparent);
  if (event.other_versions.empty()) {
    item.raw("data", event.data);
    return item.text();
  }
  base::JsonObject versions;
  versions.raw(event.version.value_or(""), event.data);
  for (const auto& other : event.other_versions) versions.raw(other.name, other.data);
  item.raw("versions", versions.text());
  return item.text();
}

std::optional<std::vector<SinkResult>> read_outcomes(std::string_view answer, size_t count) {
  json::error_code error;
  const json::value document = json::parse(answer, error);
  if (error || !document.is_array() || document.get_array().size() != count) return std::nullopt;
  std::vector<SinkResult> outcomes;
  for (const json::value& item : document.get_array()) outcomes.push_back(outcome_of(item));
  return outcomes;
}

HttpSink::HttpSink(runtime::Loop& loop, http::Client& client, HttpSinkOptions options)
    : client_(client),
      options_(std::move(options)),
      wakeup_(loop),
      backoff_({options_.pause_min, options_.pause_max}) {}

void HttpSink::stop() {
  is_stopping_ = true;
  wakeup_.notify();
}

Task<std::vector<SinkResult>> HttpSink::send(std::vector<publish::NewEvent> events) {
  std::vector<SinkResult> outcomes(events.size(), SinkResult{SinkResult::Kind::later, "not sent"});
  const bool is_due = co_await wait_until_due();
  if (!is_due || events.empty()) co_return outcomes;
  auto sending = send_part(events, {0, events.size()}, outcomes);
  co_await sending;
  co_return outcomes;
}

Task<bool> HttpSink::wait_until_due() {
  const auto now = base::BootClock::now();
  if (!is_stopping_ && due_at_ > now) {
    const auto until = std::min<base::SteadyTime>(due_at_, now + kWaitMax);
    co_await wakeup_.wait_until(until);
  }
  co_return !is_stopping_ && base::BootClock::now() >= due_at_;
}

// A batch that is rejected as a whole because of its contents is sent again in halves, until the item is
// found.
Task<void> HttpSink::send_part(const Events& events, Part part, std::vector<SinkResult>& outcomes) {
  std::vector<std::string> items;
  for (size_t i = part.first; i < part.first + part.count; ++i) items.push_back(item_json(events[i]));
  const std::string body = base::json_array(items);
  std::string headers;
  const bool has_headers =
      http::append_header(headers, "user-agent", "postrider-relay/" + std::string(base::kVersion)) &&
      http::append_header(headers, "authorization", "Bearer " + options_.key()) &&
      http::append_header(headers, "content-type", "application/json");
  if (!has_headers) {
    not_now("the API key has characters that are not allowed in a header", "");
    co_return;
  }
  http::OutboundRequest request{.url = options_.url};
  request.headers = headers;
  request.body = body;
  request.deadline = base::BootClock::now() + options_.timeout;
  request.response_body_bytes_max = request.response_kept_bytes_max = kResponseBytesMax;
  auto sending = client_.send(request);
  const http::Exchange exchange = co_await sending;
  if (const http::NetFailure* failure = exchange.failure()) {
    not_now(failure->detail.empty() ? std::string(http::describe(failure->error)) : failure->detail, "");
    co_return;
  }
  const http::ReceivedResponse& answer = *exchange.answer();
  const bool is_good = answer.status == 200 && answer.is_complete;
  auto read = is_good ? read_outcomes(answer.body_start, part.count) : std::nullopt;
  if (read) {
    reached();
    std::move(read->begin(), read->end(), outcomes.begin() + static_cast<ptrdiff_t>(part.first));
    const auto is_later = [](const SinkResult& outcome) { return outcome.kind == SinkResult::Kind::later; };
    const auto later = std::find_if(outcomes.begin(), outcomes.end(), is_later);
    if (part.count == events.size() && later != outcomes.end()) not_now(later->detail, "");
    co_return;
  }
  if (answer.status < 400 || is_passing(answer.status) || is_about_us(answer.status)) {
    not_now(answer.status == 200 ? "the response is not from a postrider server" : problem_text(answer),
            answer.retry_after);
    co_return;
  }
  if (part.count == 1) {
    outcomes[part.first] = {SinkResult::Kind::rejected, problem_text(answer)};
    co_return;
  }
  const size_t half = part.count / 2;
  auto first = send_part(events, {part.first, half}, outcomes);
  co_await first;
  auto second = send_part(events, {part.first + half, part.count - half}, outcomes);
  co_await second;
}

void HttpSink::reached() {
  if (!is_reachable_) telemetry::log_info("relay_target_reachable").field("url", options_.url.origin);
  is_reachable_ = true;
  backoff_.reset();
  due_at_ = {};
}

void HttpSink::not_now(const std::string& why, std::string_view retry_after) {
  milliseconds wait = backoff_.next();
  int64_t seconds = 0;
  const std::string text(retry_after);
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, seconds);
  if (parsed.ec == std::errc() && parsed.ptr == end && seconds > 0)
    wait = std::min<milliseconds>(std::chrono::seconds(std::min<int64_t>(seconds, 86'400)),
                                  options_.retry_after_max);
  due_at_ = base::BootClock::now() + wait;
  if (is_reachable_)
    telemetry::log_warn("relay_target_not_taking").field("url", options_.url.origin).field("error", why);
  is_reachable_ = false;
}

}  // namespace postrider::outbox
