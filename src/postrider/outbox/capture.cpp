#include "postrider/outbox/capture.hpp"

#include <algorithm>

#include "postrider/base/check.hpp"
#include "postrider/outbox/capture.sql.hpp"
#include "postrider/outbox/capture_plan.hpp"
#include "postrider/outbox/slot_reader.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::outbox {

namespace {

using runtime::Task;
using std::chrono::milliseconds;

constexpr milliseconds kFailurePause{500};
constexpr milliseconds kIdleLook{3'000};  // while nothing is wanted
constexpr milliseconds kDrainLook{50};
constexpr const char* kInUse = "55006";

}  // namespace

struct Capture::State {
  State(Capture& capture, CaptureTools tools, CaptureOptions capture_options,
        base::UniqueFunction<bool()> is_relay_leader)
      : service(capture),
        link(tools.link),
        home(tools.home),
        lease(tools.lease),
        capture_publisher(tools.capture_publisher),
        series(tools.series),
        options(runtime::validated(std::move(capture_options))),
        is_leader(std::move(is_relay_leader)),
        reader(tools.loop, {options.connect, options.rows_max, options.bytes_max}, series.ignored) {}

  Capture& service;
  pg::Link& link;
  pg::Link& home;
  const pg::SessionLease& lease;
  CapturePublisher& capture_publisher;
  CaptureMetrics series;
  CaptureOptions options;
  base::UniqueFunction<bool()> is_leader;

  SlotReader reader;
  base::SteadyTime mark_until{};
  base::SteadyTime all_read_at{};

  // Of a slot that is to be dropped.
  std::optional<int64_t> drain_xid;
  std::optional<pg::Lsn> drain_until;
  base::SteadyTime rest_until{};

  std::string failed_with;  // by the last pass
  std::string said;         // the state as it was last written into the outbox's database, and why
  // The state that is there: a row that was deleted and inserted again has another one.
  std::string stored_state;

  Task<milliseconds> pass();  // returns the pause after it
  Task<milliseconds> work();
  template <pg::Query S>
  Task<pg::RowsOf<S>> write(S statement);
  Task<void> say(std::string state, std::optional<std::string> reason);
  Task<void> alarm(std::string type, std::string reason);
  Task<void> make_slot(const CaptureView& view);
  Task<void> mourn(const CaptureView& view);
  Task<void> read(const CaptureView& view);
  Task<void> drain(const CaptureView& view);
  Task<void> drop(const CaptureView& view);
  Task<void> begin_drain(const CaptureView& view);
  Task<void> open(const CaptureView& view);
  Task<void> renew_mark();
  Task<void> take_batch(const CaptureView& view);
  void stop_reading();
  void show(const CaptureView& view);
};

Task<milliseconds> Capture::State::pass() {
  milliseconds pause = kFailurePause;
  std::optional<std::string> failed;
  try {
    pause = co_await work();
  } catch (const pg::Error& error) {
    // Too early or too busy: retry the same batch. Otherwise the result is unknown: read from the slot again.
    if (error.kind() != pg::Kind::retry) stop_reading();
    failed = error.what();
  } catch (const std::exception& error) {
    // Another database's data must not end the process, whichever exception it causes.
    stop_reading();
    failed = error.what();
  }
  // A lasting error is logged once.
  if (failed && *failed != failed_with && !service.is_stopping())
    telemetry::log_warn("capture_failed").field("outbox", options.name).field("error", *failed);
  failed_with = failed.value_or("");
  co_return pause;
}

Task<milliseconds> Capture::State::work() {
  if (!is_leader()) {
    stop_reading();
    said.clear();
    for (const auto* gauge :
         {&series.active, &series.behind_bytes, &series.retained_bytes, &series.age_seconds})
      gauge->set(0);
    all_read_at = {};
    co_return options.look;
  }
  if (reader.is_open()) reader.beat();
  const auto rows = co_await link.run_one(sql::capture_view::statement);
  const CaptureView view = read_view(rows);
  stored_state = view.state;
  show(view);
  switch (plan(view, base::BootClock::now() < rest_until)) {
    case CaptureStep::rest: {
      stop_reading();
      if (!view.is_wanted) {
        co_await say("off", std::nullopt);
      }
      co_return std::max(options.look, view.is_wanted ? options.look : std::min(kIdleLook, 3 * options.look));
    }
    case CaptureStep::reject: {
      co_await say("impossible", "wal_level is " + view.wal_level +
                                     ": change data capture needs wal_level = logical and a restart of "
                                     "the server (the private Postgres: private_capture = true)");
      co_return options.rejected;
    }
    case CaptureStep::make_slot: {
      co_await make_slot(view);
      co_return milliseconds(0);
    }
    case CaptureStep::mourn: {
      co_await mourn(view);
      co_return milliseconds(0);
    }
    case CaptureStep::read: {
      co_await read(view);
      co_return milliseconds(0);
    }
    case CaptureStep::drain: {
      co_await drain(view);
      co_return kDrainLook;
    }
  }
  co_return options.look;
}

void Capture::State::show(const CaptureView& view) {
  series.behind_bytes.set(static_cast<double>(view.behind_bytes));
  series.retained_bytes.set(static_cast<double>(view.retained_bytes));
  const auto now = base::BootClock::now();
  if (!view.has_slot || all_read_at == base::SteadyTime{}) all_read_at = now;
  series.age_seconds.set(std::chrono::duration<double>(now - all_read_at).count());
}

// Under the lease: nothing is done after another relay has taken it. The lease is checked first, because some
// of these statements cannot be rolled back.
template <pg::Query S>
Task<pg::RowsOf<S>> Capture::State::write(S statement) {
  pg::Batch batch;
  lease.fence(batch);
  const auto pending = batch.add(statement);
  pg::Results results = co_await link.run(std::move(batch));
  co_return results.take(pending);
}

// In the outbox's database, for people; and in the log when it changes.
Task<void> Capture::State::say(std::string state, std::optional<std::string> reason) {
  series.active.set(state == "on" ? 1 : 0);
  const std::string saying = state + ": " + reason.value_or("");
  if (said == saying && stored_state == state) co_return;
  const auto changed = co_await write(sql::set_capture_state{.state = state, .reason = reason});
  const bool is_first = said.empty();
  said = saying;
  stored_state = state;
  const bool is_problem = state == "fallback" || state == "impossible" || (state == "draining" && reason);
  // A state that is unchanged since before a restart is logged only if it requires action.
  if (changed.empty() && !(is_first && is_problem)) co_return;
  auto line = is_problem ? telemetry::log_error("capture_state") : telemetry::log_info("capture_state");
  line.field("outbox", options.name).field("state", state).field("reason", reason.value_or(""));
}

Task<void> Capture::State::alarm(std::string type, std::string reason) {
  try {
    co_await home.run(sql::notify_operators{.type = type, .outbox = options.name, .reason = reason});
  } catch (const pg::Error& error) {
    telemetry::log_warn("capture_alarm_failed").field("outbox", options.name).field("error", error.what());
  }
}

// The server waits for all transactions that run now, so this may take long; emit() writes rows meanwhile.
Task<void> Capture::State::make_slot(const CaptureView& view) {
  co_await say("starting", std::nullopt);
  stop_reading();
  co_await write(sql::forget_position{});
  std::optional<std::string> rejected;
  try {
    co_await reader.make_slot(view.slot_name);
  } catch (const pg::Error& error) {
    rejected = error.what();
  }
  stop_reading();
  if (service.is_stopping()) co_return;
  if (rejected) {
    rest_until = base::BootClock::now() + options.rejected;
    co_await say("impossible", "no replication slot: " + *rejected);
    co_return;
  }
  co_await write(sql::slot_created{});
}

// A failover to a server without the slot, an upgrade, a person, or the server's own limit.
Task<void> Capture::State::mourn(const CaptureView& view) {
  stop_reading();
  if (view.reader_pid) {
    co_await write(sql::end_reader{.pid = *view.reader_pid});
  }
  co_await write(sql::capture_for{.seconds = 0});
  co_await write(sql::drop_slot{.slot = view.slot_name});
  co_await write(sql::slot_lost{});
  said.clear();
  telemetry::log_error("capture_slot_lost")
      .field("outbox", options.name)
      .field("slot", view.slot_name)
      .field("note", "events that were committed and not read from it are lost");
  series.lost_slots.add();
  co_await alarm("outbox.capture_lost",
                 "the replication slot is gone or invalid: events that were not read are lost");
}

Task<void> Capture::State::open(const CaptureView& view) {
  if (reader.is_open()) co_return;
  if (view.reader_pid) {  // we hold the lease, so it is one that held it before
    co_await write(sql::end_reader{.pid = *view.reader_pid});
  }
  co_await reader.open(view.slot_name, view.position);
}

Task<void> Capture::State::renew_mark() {
  const auto now = base::BootClock::now();
  if (now < mark_until) co_return;
  co_await write(sql::capture_for{.seconds = options.mark.count()});
  mark_until = now + options.mark / 3;
}

// Until the next look.
Task<void> Capture::State::read(const CaptureView& view) {
  drain_xid.reset();
  drain_until.reset();
  co_await open(view);
  if (!view.was_slot_made) co_await write(sql::slot_created{});
  co_await renew_mark();
  co_await say("on", std::nullopt);
  const auto until = base::BootClock::now() + options.look;
  while (!service.is_stopping() && is_leader() && base::BootClock::now() < until) {
    const bool is_all = reader.collect(view.key);
    co_await take_batch(view);
    if (is_all) {
      all_read_at = base::BootClock::now();
      co_await reader.wait(until);
    }
  }
}

Task<void> Capture::State::take_batch(const CaptureView& view) {
  if (!reader.batch().empty()) {
    if (view.is_wanted && view.state == "draining") {
      co_await capture_publisher.spill(reader.batch());
      series.spilled.add(static_cast<double>(reader.batch().size()));
    } else {
      co_await capture_publisher.publish(reader.batch());
    }
    reader.batch_done();
  }
  reader.confirm();
}

Task<void> Capture::State::begin_drain(const CaptureView& view) {
  co_await write(sql::capture_for{.seconds = 0});
  mark_until = {};
  const auto settled = co_await link.run(sql::settled_xid{});
  drain_xid = settled.front().xid;
  std::optional<std::string> reason;
  if (view.is_wanted && view.state != "draining") {
    series.fallbacks.add();
    reason = "the slot makes the server keep " + std::to_string(view.retained_bytes) +
             " bytes of its log, and may " + std::to_string(view.bytes_max) + ": emit() writes rows";
  }
  if (view.state == "draining") co_return;
  co_await say("draining", reason);
  if (!reason) co_return;
  co_await alarm("outbox.capture_stopped", *reason);
}

// First no new messages, then the transactions that may have written some end, then the slot is read up to
// there, then it goes.
Task<void> Capture::State::drain(const CaptureView& view) {
  if (!drain_xid) {
    co_await begin_drain(view);
    co_return;
  }
  co_await open(view);
  if (!drain_until) {
    const auto settled = co_await link.run(sql::is_settled{.xid = *drain_xid});
    if (settled.front().is_settled) drain_until = parse_lsn(settled.front().end_lsn);
  }
  bool is_all = false;
  while (!is_all && !service.is_stopping() && is_leader()) {
    is_all = reader.collect(view.key);
    co_await take_batch(view);
  }
  if (drain_until && is_all && reader.done() >= *drain_until) {
    co_await drop(view);
    co_return;
  }
  reader.confirm(true);
  co_await reader.wait(base::BootClock::now() + kDrainLook);
}

Task<void> Capture::State::drop(const CaptureView& view) {
  stop_reading();
  while (!service.is_stopping() && is_leader()) {  // until the server reports no reader
    bool is_in_use = false;
    try {
      co_await write(sql::drop_slot{.slot = view.slot_name});
    } catch (const pg::Error& error) {
      if (error.sqlstate() != kInUse) throw;
      is_in_use = true;
    }
    if (!is_in_use) break;
    co_await service.rest_for(kDrainLook);
  }
  co_await write(sql::slot_dropped{});
  drain_xid.reset();
  drain_until.reset();
  rest_until = base::BootClock::now() + options.rest;
  std::optional<std::string> reason;
  if (view.is_wanted)
    reason = "the slot was over its limit and was dropped. Nothing is lost: emit() writes rows.";
  const std::string state = view.is_wanted ? "fallback" : "off";
  co_await say(state, reason);
}

void Capture::State::stop_reading() {
  reader.close();
  drain_until.reset();
  mark_until = {};
}

void CaptureOptions::validate() const {
  CHECK(look.count() > 0 && mark.count() > 0 && rest.count() > 0 && rejected.count() > 0);
  CHECK(rows_max > 0);
}

CaptureOptions capture_options(const std::string& name, const std::string& url, const DrainLimits& limits) {
  CaptureOptions options;
  options.name = name;
  options.connect.url = url;
  options.connect.application_name = "postrider capture";
  options.rows_max = limits.rows_max;
  options.bytes_max = limits.bytes_max;
  return options;
}

Capture::Capture(CaptureTools tools, CaptureOptions options, base::UniqueFunction<bool()> is_leader)
    : Service(tools.loop),
      state_(std::make_unique<State>(*this, tools, std::move(options), std::move(is_leader))) {}

Capture::~Capture() = default;

Task<runtime::SteadyTime> Capture::pass(runtime::SteadyTime) {
  const milliseconds pause = co_await state_->pass();
  co_return base::BootClock::now() + pause;
}

Task<void> Capture::interrupt() {
  state_->reader.interrupt();
  co_return;
}

Task<void> Capture::finish() {
  state_->stop_reading();
  co_return;
}

}  // namespace postrider::outbox
