#include "postrider/outbox/capture_publisher.hpp"

#include <ranges>

#include "postrider/base/fail_point.hpp"
#include "postrider/base/text.hpp"
#include "postrider/outbox/capture.sql.hpp"
#include "postrider/outbox/drainer.hpp"
#include "postrider/outbox/validator.hpp"

namespace postrider::outbox {

namespace {

using runtime::Task;

struct RejectedMessage {
  const Captured* message = nullptr;
  std::optional<std::string> error = {};  // none: not rejected, only stored
  bool is_final = false;                  // set aside at once; its values may be anything
};

using Text = std::optional<std::string>;
using OptionalView = std::optional<std::string_view>;

constexpr size_t kKeptTextMax = 300;  // bytes of a text that breaks a rule

Text kept(const Text& text) {
  if (!text) return std::nullopt;
  return base::storable(*text, kKeptTextMax);
}

// As the table can store it.
publish::NewEvent storable_event(const RejectedMessage& rejected) {
  publish::NewEvent event = rejected.message->row.event;
  if (!rejected.is_final) return event;
  event.id = kept(event.id);
  event.tenant_id = base::storable(event.tenant_id, kKeptTextMax);
  event.type = base::storable(event.type, kKeptTextMax);
  event.version = kept(event.version);
  event.subject = kept(event.subject);
  event.traceparent = base::storable(event.traceparent, kKeptTextMax);
  if (event.occurred_at && !model::is_writable_time(*event.occurred_at)) event.occurred_at.reset();
  if (!model::is_writable_time(*event.written_at)) event.written_at = base::wall_now();
  return event;
}

// Of a message that can never be published only as much is stored as is needed to find its author.
std::string storable_data(const RejectedMessage& rejected) {
  const std::string_view data = rejected.message->data();
  const bool is_kept = !rejected.is_final || (data.size() <= kDataBytesMax && base::is_storable(data));
  return is_kept ? std::string(data) : base::storable(data, kErrorBytesMax);
}

void add_rows(pg::Batch& batch, const std::vector<RejectedMessage>& messages, int32_t retry_seconds) {
  if (messages.empty()) return;
  using std::views::transform;
  std::vector<publish::NewEvent> events;
  std::vector<int64_t> final_ids;
  for (const RejectedMessage& rejected : messages) {
    events.push_back(storable_event(rejected));
    if (rejected.is_final) final_ids.push_back(rejected.message->row.id);
  }
  const auto texts = [&events](auto member) {
    return transform(events,
                     [member](const publish::NewEvent& event) { return OptionalView(event.*member); });
  };
  batch.add(sql::store_captured{
      .retry_seconds = retry_seconds,
      .final_ids = final_ids,
      .ids = transform(messages, [](const RejectedMessage& each) { return each.message->row.id; }),
      .event_ids = transform(events, [](const publish::NewEvent& event) { return event.given_id->uuid; }),
      .public_ids = texts(&publish::NewEvent::id),
      .tenants = texts(&publish::NewEvent::tenant_id),
      .types = texts(&publish::NewEvent::type),
      .data = transform(messages, storable_data),
      .versions = texts(&publish::NewEvent::version),
      .occurred_at = transform(events, &publish::NewEvent::occurred_at),
      .subjects = texts(&publish::NewEvent::subject),
      .traceparents = transform(events,
                                [](const publish::NewEvent& event) {
                                  return event.traceparent.empty() ? OptionalView()
                                                                   : OptionalView(event.traceparent);
                                }),
      .created_at = transform(events, [](const publish::NewEvent& event) { return *event.written_at; }),
      .errors = transform(messages, [](const RejectedMessage& each) {
        return each.error ? Text(base::storable(*each.error, kErrorBytesMax)) : Text();
      })});
}

// Last in a batch.
void add_position(pg::Batch& batch, const LogPosition& position, const DrainLimits& limits) {
  fence(batch, limits);
  batch.add(sql::advance_position{.commit = to_text(position.commit), .message = to_text(position.message)});
}

// No other relay can have got further while this session holds the lease.
void check_advanced(const pg::Rows& rows) {
  if (rows.empty()) throw pg::Error(pg::Kind::unavailable, "another relay has read further in the slot");
}

std::string rejection_by_database(const pg::Error& error) {
  return "the database rejects it (SQLSTATE " + error.sqlstate() + ")";
}

// The reason why it is rejected before anything is written, by the same rules as a row. Otherwise `row` has
// its event.
std::optional<RejectedMessage> rejection_of(const Captured& message, OutboxRow& row,
                                            const Validator* validator) {
  row.event = message.event();
  if (row.event.data.size() > static_cast<size_t>(kDataBytesMax))
    row.error = "data has more than " + std::to_string(kDataBytesMax) + " bytes";
  if (auto error = error_of(row)) return RejectedMessage{&message, std::move(error), true};
  if (validator == nullptr) return std::nullopt;
  if (auto error = validator->error_of(row.event)) return RejectedMessage{&message, std::move(error), false};
  return std::nullopt;
}

void observe_lag(OutboxMetrics& series, const std::vector<const Captured*>& messages) {
  const auto now = base::wall_now();
  for (const Captured* message : messages)
    series.lag_seconds.observe(std::chrono::duration<double>(now - *message->row.event.written_at).count());
}

}  // namespace

Task<void> CapturePublisher::spill(const std::vector<Captured>& batch) {
  std::vector<RejectedMessage> rows;
  for (const Captured& message : batch) {
    OutboxRow row;
    auto rejected = rejection_of(message, row, nullptr);
    rows.push_back(rejected ? std::move(*rejected) : RejectedMessage{.message = &message});
  }
  auto transaction = co_await link_.begin();
  pg::Batch statements;
  add_rows(statements, rows, 0);
  add_position(statements, batch.back().position, limits_);
  const auto answers = co_await transaction.run(std::move(statements));
  check_advanced(answers.back());
  co_await transaction.commit();
}

SameDatabaseCapturePublisher::SameDatabaseCapturePublisher(runtime::Loop& loop, pg::Link& link,
                                                           publish::EventWriter& writer, OutboxMetrics series,
                                                           DrainLimits limits)
    : CapturePublisher(link, std::move(limits)),
      writer_(writer),
      series_(series),
      commit_(loop, kOutboxCommits) {}

Task<void> SameDatabaseCapturePublisher::publish(const std::vector<Captured>& batch) {
  if (limits_.validator != nullptr) co_await limits_.validator->refresh();
  co_await commit_.run(*this, batch);
}

Task<void> SameDatabaseCapturePublisher::reject(const Captured& message, const pg::Error& error) {
  std::vector<RejectedMessage> rejected;
  rejected.push_back({.message = &message, .error = rejection_by_database(error)});
  pg::Batch statements;
  add_rows(statements, rejected, limits_.retry_seconds.front());
  add_position(statements, message.position, limits_);
  const auto answers = co_await link_.run(std::move(statements));
  check_advanced(answers.back());
  series_.rejected.add();
}

Task<pg::Repair> SameDatabaseCapturePublisher::repair(Items, const pg::Error& error) {
  const bool is_done = co_await writer_.repair(error);
  co_return is_done ? pg::Repair::done : pg::Repair::none;
}

void SameDatabaseCapturePublisher::give_up(Items, const pg::Error& error, pg::CommitAttempt) {
  throw pg::Error(error);
}

Task<void> SameDatabaseCapturePublisher::write(Items messages, pg::CommitAttempt) {
  std::vector<RejectedMessage> rejected;
  std::vector<const Captured*> written;
  std::vector<publish::NewEvent> events;
  for (const Captured& message : messages) {
    OutboxRow row;
    if (auto rejection = rejection_of(message, row, limits_.validator)) {
      rejected.push_back(std::move(*rejection));
      continue;
    }
    written.push_back(&message);
    events.push_back(std::move(row.event));
  }
  auto transaction = co_await link_.begin();
  if (!events.empty()) {
    const auto answers = co_await writer_.write(transaction, std::move(events));
    for (size_t i = 0; i < answers.size(); ++i)
      if (const auto* no = std::get_if<publish::Rejected>(&answers[i]))
        rejected.push_back({.message = written[i], .error = no->detail});
  }
  pg::Batch statements;
  add_rows(statements, rejected, limits_.retry_seconds.front());
  add_position(statements, messages.back().position, limits_);
  const auto answers = co_await transaction.run(std::move(statements));
  check_advanced(answers.back());
  base::reach("outbox.capture_before_commit");
  try {
    co_await transaction.commit();
  } catch (const pg::Error& error) {
    if (error.kind() == pg::Kind::unknown) writer_.unknown();
    throw;
  }
  base::reach("outbox.capture_after_commit");
  writer_.committed();
  series_.published.add(static_cast<double>(messages.size() - rejected.size()));
  series_.rejected.add(static_cast<double>(rejected.size()));
  observe_lag(series_, written);
}

OtherDatabaseCapturePublisher::OtherDatabaseCapturePublisher(pg::Link& link, Sink& sink, OutboxMetrics series,
                                                             DrainLimits limits)
    : CapturePublisher(link, std::move(limits)), sink_(sink), series_(series) {}

Task<void> OtherDatabaseCapturePublisher::publish(const std::vector<Captured>& batch) {
  if (limits_.validator != nullptr) co_await limits_.validator->refresh();
  std::vector<RejectedMessage> rejected;
  std::vector<const Captured*> sent;
  std::vector<publish::NewEvent> events;
  for (const Captured& message : batch) {
    OutboxRow row;
    if (auto rejection = rejection_of(message, row, limits_.validator)) {
      rejected.push_back(std::move(*rejection));
      continue;
    }
    if (!row.event.id) row.event.id = row.event.given_id->public_id();
    row.event.given_id.reset();
    sent.push_back(&message);
    events.push_back(std::move(row.event));
  }
  if (!events.empty()) {
    const auto outcomes = co_await sink_.send(std::move(events));
    CHECK(outcomes.size() == sent.size());
    for (size_t i = 0; i < outcomes.size(); ++i) {
      // Send all of them again: those that were published are the same events.
      if (outcomes[i].kind == SinkResult::Kind::later || outcomes[i].kind == SinkResult::Kind::throttled)
        throw pg::Error(pg::Kind::retry, "the events are not taken now: " + outcomes[i].detail);
      if (outcomes[i].kind == SinkResult::Kind::rejected)
        rejected.push_back({.message = sent[i], .error = outcomes[i].detail});
    }
  }
  observe_lag(series_, sent);
  base::reach("outbox.capture_before_confirm");
  if (!rejected.empty()) {
    pg::Batch statements;
    add_rows(statements, rejected, limits_.retry_seconds.front());
    fence(statements, limits_);
    co_await link_.run(std::move(statements));
  }
  series_.published.add(static_cast<double>(batch.size() - rejected.size()));
  series_.rejected.add(static_cast<double>(rejected.size()));
}

}  // namespace postrider::outbox
