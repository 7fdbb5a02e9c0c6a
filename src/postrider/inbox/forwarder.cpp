#include "postrider/inbox/forwarder.hpp"

#include <boost/json.hpp>
#include <utility>

#include "postrider/base/fail_point.hpp"
#include "postrider/inbox/event_type.hpp"
#include "postrider/inbox/forward.sql.hpp"
#include "postrider/inbox/pick.hpp"
#include "postrider/publish/json_scanner.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::inbox {

namespace {

using publish::Refused;
using runtime::Task;

// A stored message as it came, so that it is read as at the door.
class Stored {
 public:
  Stored(std::string_view headers, std::string_view body) {
    const boost::json::value document = boost::json::parse(headers);
    for (const auto& [name, value] : document.as_object()) texts_.emplace_back(name, value.as_string());
    for (const auto& [name, value] : texts_) fields_.push_back({name, value});
    arrival_.fields = fields_;
    arrival_.body = body;
  }
  const Arrival& arrival() const { return arrival_; }

 private:
  std::vector<std::pair<std::string, std::string>> texts_;
  std::vector<http::Field> fields_;
  Arrival arrival_;
};

bool is_json(std::string_view text) {
  publish::JsonScanner scanner(text);
  std::string_view raw;
  return scanner.value(raw) && scanner.finish();
}

// No later try could end otherwise.
bool is_final(Refused::Reason reason) {
  return reason == Refused::Reason::conflict || reason == Refused::Reason::too_large ||
         reason == Refused::Reason::unacceptable;
}

}  // namespace

Forwarder::Forwarder(runtime::Loop& loop, pg::Link& link, publish::Publisher& publisher, std::string worker)
    : link_(link), publisher_(publisher), worker_(std::move(worker)), wakeup_(loop) {}

void Forwarder::start() {
  tasks_.spawn(run());
}

void Forwarder::notify() {
  wakeup_.notify();
}

Task<void> Forwarder::stop() {
  is_stopping_ = true;
  wakeup_.notify();
  co_await tasks_.join();
}

Task<void> Forwarder::run() {
  while (!is_stopping_) {
    size_t count = 0;
    try {
      auto task = run_once();
      count = co_await task;
    } catch (const pg::Error& error) {
      telemetry::log_warn("inbox_forward_failed").field("error", error.what());
    }
    if (count == 0 && !is_stopping_) co_await wakeup_.wait_for(kPoll);
  }
}

Task<size_t> Forwarder::run_once() {
  if (!link_.is_up()) co_return 0;
  const pg::Rows rows = co_await link_.run_one(sql::forwarding_sources);
  size_t count = 0;
  for (size_t row = 0; row < rows.size() && !is_stopping_; ++row) {
    const SourceId source = rows.get<std::string>(row, 0);
    const Forward how{rows.get<std::string>(row, 1), rows.get<std::string>(row, 2)};
    auto task = forward(source, how);
    count += co_await task;
  }
  co_return count;
}

Task<size_t> Forwarder::forward(const SourceId& source, const Forward& how) {
  pg::Params params(worker_, source, kBatch, kLeaseSeconds);
  const pg::Rows rows = co_await link_.run_one(sql::take_forwards, std::move(params));
  std::vector<Job> jobs;
  for (size_t row = 0; row < rows.size(); ++row) {
    const Stored stored(rows.get<std::string_view>(row, 2), rows.get<std::string_view>(row, 3));
    Picker picker(stored.arrival());
    Job job{rows.get<base::Uuid>(row, 0), rows.get<std::optional<std::string>>(row, 1), {}, {}, {}};
    job.type = event_type(how.type, picker);
    if (auto form = picker.form_as_json())
      job.data = std::move(*form);
    else if (is_json(stored.arrival().body))
      job.data = stored.arrival().body;
    else
      job.error = "the body is neither JSON nor a form";
    jobs.push_back(std::move(job));
  }
  if (jobs.empty()) co_return 0;
  auto task = publish(jobs, how);
  co_return co_await task;
}

Task<size_t> Forwarder::publish(std::vector<Job>& jobs, const Forward& how) {
  std::vector<publish::NewEvent> events;
  std::vector<const Job*> sent;
  for (const Job& job : jobs) {
    if (!job.error.empty()) {
      const Refused unfit{Refused::Reason::unacceptable, job.error};
      auto task = note_failure(job, unfit);
      co_await task;
      continue;
    }
    publish::NewEvent event;
    event.tenant_id = how.tenant_id;
    event.type = job.type;
    event.data = job.data;
    event.id = model::MessageId{job.id}.outside();
    event.subject = job.partition_key;
    events.push_back(std::move(event));
    sent.push_back(&job);
  }
  auto publishing = publisher_.publish_all(std::move(events));
  const auto answers = co_await publishing;
  base::reach("inbox.after_forward");
  std::vector<base::Uuid> done;
  for (size_t i = 0; i < sent.size(); ++i) {
    if (const auto* refused = std::get_if<Refused>(&answers[i])) {
      auto task = note_failure(*sent[i], *refused);
      co_await task;
    } else {
      done.push_back(sent[i]->id);
    }
  }
  if (!done.empty()) {
    pg::Params params(worker_, done);
    co_await link_.run_one(sql::finish_forwards, std::move(params));
  }
  co_return done.size();
}

Task<void> Forwarder::note_failure(const Job& job, const Refused& refused) {
  telemetry::log_warn("inbox_message_not_forwarded")
      .field("message_id", model::MessageId{job.id}.outside())
      .field("error", refused.detail);
  if (is_final(refused.reason)) {
    const std::vector<base::Uuid> ids{job.id};
    pg::Params params(ids, refused.detail);
    co_await link_.run_one(sql::bury_forward, std::move(params));
    co_return;
  }
  const std::optional<double> usual_pause;
  pg::Params params(worker_, job.id, refused.detail, usual_pause);
  co_await link_.run_one(sql::fail_forward, std::move(params));
}

}  // namespace postrider::inbox
