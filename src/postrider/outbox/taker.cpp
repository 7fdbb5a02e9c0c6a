#include "postrider/outbox/taker.hpp"

#include "postrider/base/fail_point.hpp"
#include "postrider/base/text.hpp"
#include "postrider/outbox/capture.sql.hpp"
#include "postrider/outbox/judge.hpp"
#include "postrider/outbox/mover.hpp"

namespace postrider::outbox {

namespace {

using runtime::Task;

constexpr int kRepairsMax = 3;  // of one batch: its partitions made, its tenants made

struct RefusedMessage {
  const Captured* message = nullptr;
  std::optional<std::string> error = {};  // none: not refused, only kept
  bool is_final = false;                  // set aside at once; its values may be anything
};

using Text = std::optional<std::string>;

constexpr size_t kKeptTextMax = 300;  // bytes of a text that breaks a rule

Text kept(const Text& text) {
  if (!text) return std::nullopt;
  return base::storable(*text, kKeptTextMax);
}

// As a row of the outbox can hold it.
publish::NewEvent storable_event(const RefusedMessage& refused) {
  publish::NewEvent event = refused.message->row.event;
  if (!refused.is_final) return event;
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

// Of a message that can never be published only as much is kept as is needed to find who wrote it.
std::string storable_data(const RefusedMessage& refused) {
  const std::string_view data = refused.message->data();
  const bool is_kept = !refused.is_final || (data.size() <= kDataBytesMax && base::is_storable(data));
  return is_kept ? std::string(data) : base::storable(data, kErrorBytesMax);
}

void add_rows(pg::Batch& batch, const std::vector<RefusedMessage>& messages, int32_t retry_seconds) {
  if (messages.empty()) return;
  std::vector<int64_t> ids, final_ids;
  std::vector<base::Uuid> event_ids;
  std::vector<std::string> tenants, types, data;
  std::vector<Text> public_ids, versions, subjects, traces, errors;
  std::vector<std::optional<base::Timestamp>> occurred;
  std::vector<base::Timestamp> created;
  for (const RefusedMessage& refused : messages) {
    const publish::NewEvent event = storable_event(refused);
    ids.push_back(refused.message->row.id);
    if (refused.is_final) final_ids.push_back(refused.message->row.id);
    event_ids.push_back(event.given_id->uuid);
    public_ids.push_back(event.id);
    tenants.push_back(event.tenant_id);
    types.push_back(event.type);
    data.push_back(storable_data(refused));
    versions.push_back(event.version);
    occurred.push_back(event.occurred_at);
    subjects.push_back(event.subject);
    traces.push_back(event.traceparent.empty() ? Text() : event.traceparent);
    created.push_back(*event.written_at);
    errors.push_back(refused.error ? Text(base::storable(*refused.error, kErrorBytesMax)) : Text());
  }
  batch.with(sql::store_captured, ids, event_ids, public_ids, tenants, types, data, versions, occurred,
             subjects, traces, created, errors, retry_seconds, final_ids);
}

// Last in a batch.
void add_position(pg::Batch& batch, const LogPosition& position, const MoveLimits& limits) {
  fence(batch, limits);
  batch.with(sql::advance_position, to_text(position.commit), to_text(position.message));
}

// Nobody else can be further while this session holds the lease.
void check_advanced(const pg::Rows& rows) {
  if (rows.empty()) throw pg::Error(pg::Kind::unavailable, "another relay was further in the slot");
}

std::string refusal_of(const pg::Error& error) {
  return "the database refuses it (SQLSTATE " + error.sqlstate() + ")";
}

// Why it is refused before anything is written: what is refused of a row is refused of a message, too.
// Otherwise `row` has its event.
std::optional<RefusedMessage> refusal_of(const Captured& message, Row& row, const Judge* judge) {
  row.event = message.event();
  if (row.event.data.size() > static_cast<size_t>(kDataBytesMax))
    row.fault = "data has more than " + std::to_string(kDataBytesMax) + " bytes";
  std::string fault = fault_of(row);
  if (!fault.empty()) return RefusedMessage{&message, std::move(fault), true};
  if (judge != nullptr) fault = judge->fault_of(row.event);
  if (!fault.empty()) return RefusedMessage{&message, std::move(fault), false};
  return std::nullopt;
}

void observe_lag(telemetry::OutboxSeries& series, const std::vector<const Captured*>& messages) {
  const auto now = base::wall_now();
  for (const Captured* message : messages)
    series.lag_seconds.observe(std::chrono::duration<double>(now - *message->row.event.written_at).count());
}

}  // namespace

Task<void> Taker::spill(const std::vector<Captured>& batch) {
  std::vector<RefusedMessage> rows;
  for (const Captured& message : batch) {
    Row row;
    auto refused = refusal_of(message, row, nullptr);
    rows.push_back(refused ? std::move(*refused) : RefusedMessage{.message = &message});
  }
  auto transaction = co_await link_.begin();
  pg::Batch statements;
  add_rows(statements, rows, 0);
  add_position(statements, batch.back().position, limits_);
  const auto answers = co_await transaction.run(std::move(statements));
  check_advanced(answers.back());
  co_await transaction.commit();
}

SameDatabaseTaker::SameDatabaseTaker(pg::Link& link, publish::EventWriter& writer,
                                     telemetry::OutboxSeries series, MoveLimits limits)
    : Taker(link, std::move(limits)), writer_(writer), series_(series) {}

Task<void> SameDatabaseTaker::take(const std::vector<Captured>& batch) {
  if (is_unsure_) {
    auto told = writer_.unsure();
    co_await told;
    is_unsure_ = false;
  }
  if (limits_.judge != nullptr) co_await limits_.judge->refresh();
  auto taking = take_range(batch, 0, batch.size());
  co_await taking;
}

// After an error that is the data's fault: halves, which keep the order, down to the one message.
Task<void> SameDatabaseTaker::take_range(const std::vector<Captured>& batch, size_t from, size_t to) {
  std::optional<pg::Error> error;
  try {
    auto publishing = publish_range(batch, from, to);
    co_await publishing;
    repairs_ = 0;
  } catch (const pg::Error& failure) {
    if (failure.kind() != pg::Kind::item && failure.kind() != pg::Kind::retry) throw;
    error = failure;
  }
  if (!error) co_return;
  if (repairs_ < kRepairsMax) {
    auto repairing = writer_.repair(*error);
    if (co_await repairing) {
      ++repairs_;
      auto again = take_range(batch, from, to);
      co_await again;
      co_return;
    }
  }
  if (error->kind() == pg::Kind::retry) throw pg::Error(*error);
  if (to - from > 1) {
    const size_t middle = from + (to - from) / 2;
    auto first = take_range(batch, from, middle);
    co_await first;
    auto second = take_range(batch, middle, to);
    co_await second;
    co_return;
  }
  std::vector<RefusedMessage> refused;
  refused.push_back({.message = &batch[from], .error = refusal_of(*error)});
  pg::Batch statements;
  add_rows(statements, refused, limits_.retry_seconds.front());
  add_position(statements, batch[from].position, limits_);
  const auto answers = co_await link_.run(std::move(statements));
  check_advanced(answers.back());
  series_.refused.add();
}

Task<void> SameDatabaseTaker::publish_range(const std::vector<Captured>& batch, size_t from, size_t to) {
  std::vector<RefusedMessage> refused;
  std::vector<const Captured*> written;
  std::vector<publish::NewEvent> events;
  for (size_t i = from; i < to; ++i) {
    Row row;
    if (auto fault = refusal_of(batch[i], row, limits_.judge)) {
      refused.push_back(std::move(*fault));
      continue;
    }
    written.push_back(&batch[i]);
    events.push_back(std::move(row.event));
  }
  auto transaction = co_await link_.begin();
  if (!events.empty()) {
    auto writing = writer_.write(transaction, std::move(events));
    const auto answers = co_await writing;
    for (size_t i = 0; i < answers.size(); ++i)
      if (const auto* no = std::get_if<publish::Refused>(&answers[i]))
        refused.push_back({.message = written[i], .error = no->detail});
  }
  pg::Batch statements;
  add_rows(statements, refused, limits_.retry_seconds.front());
  add_position(statements, batch[to - 1].position, limits_);
  const auto answers = co_await transaction.run(std::move(statements));
  check_advanced(answers.back());
  base::reach("outbox.capture_before_commit");
  try {
    co_await transaction.commit();
  } catch (const pg::Error& error) {
    is_unsure_ = error.kind() == pg::Kind::unknown;
    throw;
  }
  base::reach("outbox.capture_after_commit");
  writer_.committed();
  series_.published.add(static_cast<double>(to - from - refused.size()));
  series_.refused.add(static_cast<double>(refused.size()));
  observe_lag(series_, written);
}

OtherDatabaseTaker::OtherDatabaseTaker(pg::Link& link, Sink& sink, telemetry::OutboxSeries series,
                                       MoveLimits limits)
    : Taker(link, std::move(limits)), sink_(sink), series_(series) {}

Task<void> OtherDatabaseTaker::take(const std::vector<Captured>& batch) {
  if (limits_.judge != nullptr) co_await limits_.judge->refresh();
  std::vector<RefusedMessage> refused;
  std::vector<const Captured*> sent;
  std::vector<publish::NewEvent> events;
  for (const Captured& message : batch) {
    Row row;
    if (auto fault = refusal_of(message, row, limits_.judge)) {
      refused.push_back(std::move(*fault));
      continue;
    }
    if (!row.event.id) row.event.id = row.event.given_id->public_id();
    row.event.given_id.reset();
    sent.push_back(&message);
    events.push_back(std::move(row.event));
  }
  if (!events.empty()) {
    auto sending = sink_.send(std::move(events));
    const auto outcomes = co_await sending;
    CHECK(outcomes.size() == sent.size());
    for (size_t i = 0; i < outcomes.size(); ++i) {
      // All of them again: those that were published are the same events.
      if (outcomes[i].kind == Outcome::Kind::later)
        throw pg::Error(pg::Kind::retry, "the events are not taken now: " + outcomes[i].detail);
      if (outcomes[i].kind == Outcome::Kind::refused)
        refused.push_back({.message = sent[i], .error = outcomes[i].detail});
    }
  }
  observe_lag(series_, sent);
  base::reach("outbox.capture_before_confirm");
  if (!refused.empty()) {
    pg::Batch statements;
    add_rows(statements, refused, limits_.retry_seconds.front());
    fence(statements, limits_);
    co_await link_.run(std::move(statements));
  }
  series_.published.add(static_cast<double>(batch.size() - refused.size()));
  series_.refused.add(static_cast<double>(refused.size()));
}

}  // namespace postrider::outbox
