#include "postrider/inbox/forwarder.hpp"

#include <boost/json.hpp>
#include <utility>

#include "postrider/base/fail_point.hpp"
#include "postrider/base/json_scanner.hpp"
#include "postrider/inbox/event_type.hpp"
#include "postrider/inbox/pick.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::inbox {

namespace {

using publish::Rejected;
using runtime::Task;

using Headers = std::vector<std::pair<std::string, std::string>>;

// No value if they do not have the stored form: an object of strings.
std::optional<Headers> read_headers(std::string_view json) {
  boost::system::error_code error;
  const boost::json::value document = boost::json::parse(json, error);
  if (error) return std::nullopt;
  const auto* members = document.if_object();
  if (!members) return std::nullopt;
  Headers headers;
  for (const auto& [name, value] : *members) {
    const auto* text = value.if_string();
    if (!text) return std::nullopt;
    headers.emplace_back(name, *text);
  }
  return headers;
}

// A stored message as it was received, so that it is parsed as on arrival.
class Stored {
 public:
  Stored(const Headers& headers, std::string_view body) {
    for (const auto& [name, value] : headers) fields_.push_back({name, value});
    arrival_.fields = fields_;
    arrival_.body = body;
  }
  Stored(const Stored&) = delete;
  Stored& operator=(const Stored&) = delete;
  const Arrival& arrival() const { return arrival_; }

 private:
  std::vector<http::Field> fields_;
  Arrival arrival_;
};

bool is_json(std::string_view text) {
  base::JsonScanner scanner(text);
  std::string_view raw;
  return scanner.value(raw) && scanner.finish();
}

// No later try could end otherwise.
bool is_final(Rejected::Reason reason) {
  return reason == Rejected::Reason::conflict || reason == Rejected::Reason::too_large ||
         reason == Rejected::Reason::invalid;
}

// The publisher would have rejected any message, so this does not count as an attempt.
bool is_blameless(Rejected::Reason reason) {
  return reason == Rejected::Reason::too_fast || reason == Rejected::Reason::overloaded ||
         reason == Rejected::Reason::unavailable;
}

}  // namespace

Forwarder::Forwarder(runtime::Loop& loop, pg::Link& link, publish::Publisher& publisher, std::string worker)
    : Service(loop), link_(link), publisher_(publisher), worker_(std::move(worker)) {}

Task<runtime::SteadyTime> Forwarder::pass(runtime::SteadyTime now) {
  try {
    const size_t count = co_await forward_due(now);
    if (count > 0) co_return now;
  } catch (const pg::Error& error) {
    telemetry::log_warn("inbox_forward_failed").field("error", error.what());
  }
  co_return base::BootClock::now() + kPoll;
}

Task<size_t> Forwarder::forward_due(base::SteadyTime now) {
  if (!link_.is_up()) co_return 0;
  const auto rows = co_await link_.run(sql::forwarding_sources{});
  size_t count = 0;
  for (const auto& row : rows) {
    if (is_stopping()) break;
    const SourceId source(row.id);
    if (is_held(source, now)) continue;
    const Forward how{std::string(row.forward_tenant_id), std::string(row.forward_type)};
    auto task = forward(source, how);
    count += co_await task;
  }
  co_return count;
}

bool Forwarder::is_held(const SourceId& source, base::SteadyTime now) {
  std::erase_if(held_until_, [now](const auto& held) { return held.second <= now; });
  return held_until_.contains(source);
}

Task<size_t> Forwarder::forward(const SourceId& source, const Forward& how) {
  const auto rows = co_await link_.run(sql::take_forwards{.worker = worker_,
                                                          .source = source,
                                                          .rows = kBatch,
                                                          .lease_seconds = kLeaseSeconds,
                                                          .bytes_max = kBatchBytes});
  if (rows.empty()) co_return 0;
  std::vector<Job> jobs;
  for (const auto& row : rows) jobs.push_back(read_job(row, how));
  auto publishing = publish(jobs, how);
  const Forwarded outcome = co_await publishing;
  co_return co_await settle(source, outcome);
}

Forwarder::Job Forwarder::read_job(const sql::take_forwards::Row& row, const Forward& how) {
  Job job{row.id, std::optional<std::string>(row.partition_key), {}, {}, {}};
  const auto headers = read_headers(row.headers);
  if (!headers) {
    job.error = "the stored headers cannot be read";
    return job;
  }
  const Stored stored(*headers, row.body);
  Picker picker(stored.arrival());
  job.type = event_type(how.type, picker);
  if (auto form = picker.form_as_json())
    job.data = std::move(*form);
  else if (is_json(stored.arrival().body))
    job.data = stored.arrival().body;
  else
    job.error = "the body is neither JSON nor a form";
  // It never fits into the publisher. A form grows when it becomes JSON.
  if (job.data.size() > kDataBytesMax) job.error = "the body is too large for an event";
  return job;
}

Task<Forwarder::Forwarded> Forwarder::publish(const std::vector<Job>& jobs, const Forward& how) {
  Forwarded outcome;
  std::vector<publish::NewEvent> events;
  std::vector<base::Uuid> sent;
  for (const Job& job : jobs) {
    if (!job.error.empty()) {
      outcome.rejected.push_back({job.id, {Rejected::Reason::invalid, job.error}});
      continue;
    }
    publish::NewEvent event;
    event.tenant_id = how.tenant_id;
    event.type = job.type;
    event.data = job.data;
    event.id = model::MessageId{job.id}.public_id();
    event.subject = job.partition_key;
    events.push_back(std::move(event));
    sent.push_back(job.id);
  }
  const auto answers = co_await publisher_.publish_all(std::move(events));
  base::reach("inbox.after_forward");
  for (size_t i = 0; i < sent.size(); ++i) {
    const auto* rejected = std::get_if<Rejected>(&answers[i]);
    if (!rejected) {
      outcome.done.push_back(sent[i]);
    } else if (is_blameless(rejected->reason)) {
      outcome.held.push_back(sent[i]);
      outcome.held_error = rejected->detail;
    } else {
      outcome.rejected.push_back({sent[i], *rejected});
    }
  }
  co_return outcome;
}

Task<size_t> Forwarder::settle(const SourceId& source, const Forwarded& outcome) {
  size_t count = outcome.done.size();
  if (!outcome.done.empty()) {
    co_await link_.run(sql::finish_forwards{.ids = outcome.done, .worker = worker_});
  }
  if (!outcome.held.empty()) {
    co_await give_back(source, outcome);
  }
  for (const Failure& failure : outcome.rejected) {
    co_await note_failure(failure);
    if (is_final(failure.rejected.reason)) ++count;
  }
  co_return count;
}

Task<void> Forwarder::give_back(const SourceId& source, const Forwarded& outcome) {
  telemetry::log_warn("inbox_forward_failed")
      .field("source", source)
      .field("messages", outcome.held.size())
      .field("error", outcome.held_error);
  held_until_[source] = base::BootClock::now() + kHold;
  const double pause_seconds = std::chrono::duration<double>(kHold).count();
  co_await link_.run(sql::give_back_forwards{
      .worker = worker_, .ids = outcome.held, .error = outcome.held_error, .pause_seconds = pause_seconds});
}

Task<void> Forwarder::note_failure(const Failure& failure) {
  telemetry::log_warn("inbox_message_not_forwarded")
      .field("message_id", model::MessageId{failure.id}.public_id())
      .field("error", failure.rejected.detail);
  if (is_final(failure.rejected.reason)) {
    const std::vector<base::Uuid> ids{failure.id};
    co_await link_.run(sql::fail_forward_permanently{.ids = ids, .error = failure.rejected.detail});
    co_return;
  }
  co_await link_.run(
      sql::fail_forward{.id = failure.id, .worker = worker_, .error = failure.rejected.detail});
}

}  // namespace postrider::inbox
