#include "postrider/history/stream_events.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "postrider/base/json_writer.hpp"
#include "postrider/model/id_time.hpp"
#include "postrider/model/ids.hpp"

namespace postrider::history {

using runtime::Task;

namespace {

constexpr std::string_view kTooMany =
    R"({"detail":"more events are published than are watched for late ones; see the list of events"})";

// The smallest ID of the minute before this one was created.
base::Uuid late_floor(const base::Uuid& id) {
  return model::id_floor(model::time_of(id) - EventFollower::kLateMax);
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
    : tenant_(std::move(tenant)), head_(start.after), since_(start.since), resumed_after_(start.after) {
  if (since_) floor_ = model::id_floor(*since_);
  if (head_)
    floor_ = std::max(floor_, late_floor(*head_));
  else if (since_)
    head_ = floor_;
}

// Without a cursor only events from now on are sent: those that exist already are marked as sent.
Task<void> EventFollower::begin(pg::Link& link, base::Timestamp now, runtime::Loop& loop) {
  since_ = now;
  floor_ = model::id_floor(now - kLateMax);
  base::Uuid last;
  last.bytes.fill(0xFF);
  const auto rows = co_await link.run(
      sql::event_ids_between{.tenant = tenant_, .after = floor_, .up_to = last, .rows = kIdsMax});
  head_ = floor_;
  runtime::Pause pause(loop);
  for (const auto& row : rows) {
    shown_.add(row.id);
    head_ = std::max(*head_, row.id);
    co_await pause;
  }
}

void EventFollower::show(const sql::StreamedEventRow& row, Sink sink) {
  if (!shown_.add(row.id)) return;
  head_ = std::max(*head_, row.id);
  ++count_;
  base::JsonObject json;
  json.add("id", row.public_id)
      .add("type", row.type)
      .add("tenant_id", tenant_)
      .add("created_at", row.created_at)
      .add("may_be_repeat", resumed_after_ && row.id <= *resumed_after_);
  if (sink.sees_payloads) json.add("body", row.body);
  const StreamCursor cursor{head_, std::nullopt, since_};
  append_message(sink.out, "event", cursor.text(), json.text());
}

Task<bool> EventFollower::look_for_new(pg::Link& link, Sink sink) {
  const auto rows =
      co_await link.run(sql::events_after{.tenant = tenant_, .after = *head_, .rows = kEventsAtOnce});
  runtime::Pause pause(sink.loop);
  for (const auto& row : rows) {
    show(row, sink);
    co_await pause;
  }
  co_return rows.size() == static_cast<size_t>(kEventsAtOnce);
}

Task<void> EventFollower::look_for_late(pg::Link& link, Sink sink) {
  const base::Uuid from = std::max(floor_, late_floor(*head_));
  const auto ids = co_await link.run(
      sql::event_ids_between{.tenant = tenant_, .after = from, .up_to = *head_, .rows = kIdsMax});
  if (ids.size() == static_cast<size_t>(kIdsMax) && !std::exchange(is_gap_reported_, true))
    append_message(sink.out, "gap", "", kTooMany);
  std::vector<base::Uuid> late;
  runtime::Pause pause(sink.loop);
  for (const auto& row : ids) {
    if (late.size() == static_cast<size_t>(kEventsAtOnce)) break;
    if (!shown_.contains(row.id)) late.push_back(row.id);
    co_await pause;
  }
  if (late.empty()) co_return;
  const auto rows = co_await link.run(sql::streamed_events_of_ids{
      .tenant = tenant_, .smallest = late.front(), .largest = late.back(), .events = late});
  for (const auto& row : rows) {
    show(row, sink);
    co_await pause;
  }
  if (late.size() == static_cast<size_t>(kEventsAtOnce)) late_due_ = {};
}

Task<bool> EventFollower::look(pg::Link& link, base::Timestamp now, Sink sink) {
  if (!head_) co_await begin(link, now, sink.loop);
  // Late events first, so that a resumed stream is in order.
  if (base::BootClock::now() >= late_due_) {
    late_due_ = base::BootClock::now() + kLateInterval;
    co_await look_for_late(link, sink);
  }
  if (late_due_ == base::SteadyTime{}) co_return true;
  co_return co_await look_for_new(link, sink);
}

}  // namespace postrider::history
