#include "postrider/history/stream_events.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "postrider/base/json_writer.hpp"
#include "postrider/history/stream.sql.hpp"
#include "postrider/model/ids.hpp"

namespace postrider::history {

using runtime::Task;

namespace {

constexpr std::string_view kTooMany =
    R"({"detail":"more events are published than are watched for late ones; see the list of events"})";

// The smallest id of a minute before this one was made; its first six bytes are milliseconds.
base::Uuid late_floor(const base::Uuid& id) {
  int64_t milliseconds = 0;
  for (size_t i = 0; i < 6; ++i) milliseconds = (milliseconds << 8) | id.bytes[i];
  const base::Timestamp made_at{std::chrono::milliseconds(milliseconds)};
  return model::id_floor(made_at - EventFollower::kLateMax);
}

}  // namespace

void append_message(std::string& out, std::string_view kind, std::string_view id, std::string_view json) {
  out += "event: ";
  out += kind;
  if (!id.empty()) {
    out += "\nid: ";
    out += id;
  }
  out += "\ndata: ";
  out += json;
  out += "\n\n";
}

std::string StreamCursor::text() const {
  std::string text = event ? model::EventId{*event}.public_id() : "";
  if (at) text += "@" + base::to_rfc3339(*at);
  if (since) text += "~" + base::to_rfc3339(*since);
  return text;
}

std::optional<StreamCursor> StreamCursor::parse(std::string_view text) {
  StreamCursor cursor;
  if (const size_t end = text.find('~'); end != std::string_view::npos) {
    cursor.since = base::parse_rfc3339(text.substr(end + 1));
    if (!cursor.since) return std::nullopt;
    text = text.substr(0, end);
  }
  const size_t mark = text.find('@');
  const std::string_view event = text.substr(0, mark);
  if (!event.empty()) {
    const auto id = model::EventId::from_public_id(event);
    if (!id) return std::nullopt;
    cursor.event = id->uuid;
  }
  if (mark != std::string_view::npos) {
    cursor.at = base::parse_rfc3339(text.substr(mark + 1));
    if (!cursor.at) return std::nullopt;
  }
  if (!cursor.event && !cursor.at && !cursor.since) return std::nullopt;
  return cursor;
}

EventFollower::EventFollower(model::TenantId tenant, Start start)
    : tenant_(std::move(tenant)), head_(start.after), since_(start.since), resumed_behind_(start.after) {
  if (since_) floor_ = model::id_floor(*since_);
  if (head_)
    floor_ = std::max(floor_, late_floor(*head_));
  else if (since_)
    head_ = floor_;
}

// Without a cursor only what comes from now on is shown: what is there is known.
Task<void> EventFollower::begin(pg::Link& link, base::Timestamp now, runtime::Loop& loop) {
  since_ = now;
  floor_ = model::id_floor(now - kLateMax);
  base::Uuid last;
  last.bytes.fill(0xFF);
  pg::Params params(tenant_, floor_, last, kIdsMax);
  const pg::Rows rows = co_await link.run_one(sql::event_ids_between, std::move(params));
  head_ = floor_;
  runtime::Pause pause(loop);
  for (size_t row = 0; row < rows.size(); ++row) {
    const auto id = rows.get<base::Uuid>(row, 0);
    shown_.add(id);
    head_ = std::max(*head_, id);
    co_await pause;
  }
}

void EventFollower::show(const pg::Rows& rows, size_t row, Sink sink) {
  const auto id = rows.get<base::Uuid>(row, 0);
  if (!shown_.add(id)) return;
  head_ = std::max(*head_, id);
  ++count_;
  base::JsonObject json;
  json.add("id", rows.get<std::string_view>(row, 1))
      .add("type", rows.get<std::string_view>(row, 2))
      .add("tenant_id", tenant_)
      .add("created_at", rows.get<base::Timestamp>(row, 3))
      .add("may_be_repeat", resumed_behind_ && id <= *resumed_behind_);
  if (sink.sees_payloads) json.add("body", rows.get<std::string_view>(row, 4));
  const StreamCursor cursor{head_, std::nullopt, since_};
  append_message(sink.out, "event", cursor.text(), json.text());
}

Task<bool> EventFollower::look_for_new(pg::Link& link, Sink sink) {
  pg::Params params(tenant_, *head_, kEventsAtOnce);
  const pg::Rows rows = co_await link.run_one(sql::events_after, std::move(params));
  runtime::Pause pause(sink.loop);
  for (size_t row = 0; row < rows.size(); ++row) {
    show(rows, row, sink);
    co_await pause;
  }
  co_return rows.size() == static_cast<size_t>(kEventsAtOnce);
}

Task<void> EventFollower::look_for_late(pg::Link& link, Sink sink) {
  const base::Uuid from = std::max(floor_, late_floor(*head_));
  pg::Params window(tenant_, from, *head_, kIdsMax);
  const pg::Rows ids = co_await link.run_one(sql::event_ids_between, std::move(window));
  if (ids.size() == static_cast<size_t>(kIdsMax) && !std::exchange(is_gap_told_, true))
    append_message(sink.out, "gap", "", kTooMany);
  std::vector<base::Uuid> late;
  runtime::Pause pause(sink.loop);
  for (size_t row = 0; row < ids.size() && late.size() < static_cast<size_t>(kEventsAtOnce); ++row) {
    const auto id = ids.get<base::Uuid>(row, 0);
    if (!shown_.contains(id)) late.push_back(id);
    co_await pause;
  }
  if (late.empty()) co_return;
  pg::Params params(tenant_, late.front(), late.back(), late);
  const pg::Rows rows = co_await link.run_one(sql::streamed_events_of_ids, std::move(params));
  for (size_t row = 0; row < rows.size(); ++row) {
    show(rows, row, sink);
    co_await pause;
  }
  if (late.size() == static_cast<size_t>(kEventsAtOnce)) late_due_ = {};
}

Task<bool> EventFollower::look(pg::Link& link, base::Timestamp now, Sink sink) {
  if (!head_) co_await begin(link, now, sink.loop);
  // Late ones first, so that a resumed stream is in order.
  if (base::BootClock::now() >= late_due_) {
    late_due_ = base::BootClock::now() + kLateInterval;
    co_await look_for_late(link, sink);
  }
  if (late_due_ == base::SteadyTime{}) co_return true;
  co_return co_await look_for_new(link, sink);
}

}  // namespace postrider::history
