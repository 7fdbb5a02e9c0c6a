#include "postrider/outbox/capture.hpp"

#include <algorithm>

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
  State(CaptureTools tools, CaptureOptions options_, base::UniqueFunction<bool()> is_leader_)
      : link(tools.link),
        home(tools.home),
        lease(tools.lease),
        taker(tools.taker),
        series(tools.series),
        options(std::move(options_)),
        is_leader(std::move(is_leader_)),
        wakeup(tools.loop),
        reader(tools.loop, {options.connect, options.rows_max, options.bytes_max}, series.ignored) {}

  pg::Link& link;
  pg::Link& home;
  const pg::Lease& lease;
  Taker& taker;
  telemetry::CaptureSeries series;
  CaptureOptions options;
  base::UniqueFunction<bool()> is_leader;
  runtime::Wakeup wakeup;
  runtime::TaskGroup tasks;
  bool is_stopping = false;

  SlotReader reader;
  base::SteadyTime mark_until{};
  base::SteadyTime all_read_at{};

  // Of a slot that is to be dropped.
  std::optional<int64_t> drain_xid;
  std::optional<pg::Lsn> drain_until;
  base::SteadyTime rest_until{};

  std::string failed_with;  // by the last pass
  std::string said;         // the state as it was last written into the outbox's database, and why
  std::string
      stored_state;  // the state that is there: a row that was deleted and inserted again has another one

  Task<void> run();
  Task<milliseconds> pass();
  Task<pg::Rows> write(pg::Statement statement, pg::Params params = pg::Params());
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

Task<void> Capture::State::run() {
  while (!is_stopping) {
    milliseconds pause = kFailurePause;
    std::optional<std::string> failed;
    try {
      auto once = pass();
      pause = co_await once;
    } catch (const pg::Error& error) {
      // Too early or too busy: the same batch again. Otherwise nobody knows what was done: from the slot.
      if (error.kind() != pg::Kind::retry) stop_reading();
      failed = error.what();
    } catch (const std::exception& error) {
      // Another database's data must not end the process, whatever it makes a library throw.
      stop_reading();
      failed = error.what();
    }
    // What stays wrong is said once.
    if (failed && *failed != failed_with && !is_stopping)
      telemetry::log_warn("capture_failed").field("outbox", options.name).field("error", *failed);
    failed_with = failed.value_or("");
    if (pause.count() > 0 && !is_stopping) co_await wakeup.wait_for(pause);
  }
}

// What to wait before the next.
Task<milliseconds> Capture::State::pass() {
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
  const auto rows = co_await link.run_one(sql::capture_view);
  const CaptureView view = read_view(rows);
  stored_state = view.state;
  show(view);
  switch (plan(view, base::BootClock::now() < rest_until)) {
    case CaptureStep::rest: {
      stop_reading();
      if (!view.is_wanted) {
        auto told = say("off", std::nullopt);
        co_await told;
      }
      co_return std::max(options.look, view.is_wanted ? options.look : std::min(kIdleLook, 3 * options.look));
    }
    case CaptureStep::refuse: {
      auto told = say("impossible", "wal_level is " + view.wal_level +
                                        ": change data capture needs wal_level = logical and a restart of "
                                        "the server (the private Postgres: private_capture = true)");
      co_await told;
      co_return options.refused;
    }
    case CaptureStep::make_slot: {
      auto making = make_slot(view);
      co_await making;
      co_return milliseconds(0);
    }
    case CaptureStep::mourn: {
      auto mourning = mourn(view);
      co_await mourning;
      co_return milliseconds(0);
    }
    case CaptureStep::read: {
      auto reading = read(view);
      co_await reading;
      co_return milliseconds(0);
    }
    case CaptureStep::drain: {
      auto draining = drain(view);
      co_await draining;
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

// Under the lease: after another relay has taken it, nothing is done. The lease is looked at first, since not
// all of these statements can be rolled back.
Task<pg::Rows> Capture::State::write(pg::Statement statement, pg::Params params) {
  pg::Batch batch;
  lease.fence(batch);
  batch.add(statement, std::move(params));
  auto answers = co_await link.run(std::move(batch));
  co_return std::move(answers.back());
}

// In the outbox's database, for people; and in the log when it changes.
Task<void> Capture::State::say(std::string state, std::optional<std::string> reason) {
  series.active.set(state == "on" ? 1 : 0);
  const std::string saying = state + ": " + reason.value_or("");
  if (said == saying && stored_state == state) co_return;
  pg::Params params(state, reason);
  const auto changed = co_await write(sql::set_capture_state, std::move(params));
  const bool is_first = said.empty();
  said = saying;
  stored_state = state;
  const bool is_trouble = state == "fallback" || state == "impossible" || (state == "draining" && reason);
  // What is as it was before a restart is worth a line only when somebody has to act.
  if (changed.empty() && !(is_first && is_trouble)) co_return;
  auto line = is_trouble ? telemetry::log_error("capture_state") : telemetry::log_info("capture_state");
  line.field("outbox", options.name).field("state", state).field("reason", reason.value_or(""));
}

Task<void> Capture::State::alarm(std::string type, std::string reason) {
  try {
    pg::Params params(options.name, type, reason);
    co_await home.run_one(sql::tell_operators, std::move(params));
  } catch (const pg::Error& error) {
    telemetry::log_warn("capture_alarm_failed").field("outbox", options.name).field("error", error.what());
  }
}

// The server waits for all transactions that run now, so this may take long; emit() writes rows meanwhile.
Task<void> Capture::State::make_slot(const CaptureView& view) {
  auto told = say("starting", std::nullopt);
  co_await told;
  stop_reading();
  co_await write(sql::forget_position);
  std::optional<std::string> refused;
  try {
    auto making = reader.make_slot(view.slot_name);
    co_await making;
  } catch (const pg::Error& error) {
    refused = error.what();
  }
  stop_reading();
  if (is_stopping) co_return;
  if (refused) {
    rest_until = base::BootClock::now() + options.refused;
    auto saying = say("impossible", "no replication slot: " + *refused);
    co_await saying;
    co_return;
  }
  co_await write(sql::slot_made);
}

// A failover to a server without the slot, an upgrade, a person, or the server's own limit.
Task<void> Capture::State::mourn(const CaptureView& view) {
  stop_reading();
  if (view.reader_pid) {
    pg::Params pid(*view.reader_pid);
    co_await write(sql::end_reader, std::move(pid));
  }
  pg::Params off(int64_t{0});
  co_await write(sql::capture_for, std::move(off));
  pg::Params name(view.slot_name);
  co_await write(sql::drop_slot, std::move(name));
  co_await write(sql::slot_lost);
  said.clear();
  telemetry::log_error("capture_slot_lost")
      .field("outbox", options.name)
      .field("slot", view.slot_name)
      .field("note", "events that were committed and not read from it are lost");
  series.lost_slots.add();
  auto alarming = alarm("outbox.capture_lost",
                        "the replication slot is gone or invalid: events that were not read are lost");
  co_await alarming;
}

Task<void> Capture::State::open(const CaptureView& view) {
  if (reader.is_open()) co_return;
  if (view.reader_pid) {  // we hold the lease, so it is one that held it before
    pg::Params pid(*view.reader_pid);
    co_await write(sql::end_reader, std::move(pid));
  }
  auto opening = reader.open(view.slot_name, view.position);
  co_await opening;
}

Task<void> Capture::State::renew_mark() {
  const auto now = base::BootClock::now();
  if (now < mark_until) co_return;
  pg::Params seconds(int64_t{options.mark.count()});
  co_await write(sql::capture_for, std::move(seconds));
  mark_until = now + options.mark / 3;
}

// Until the next look.
Task<void> Capture::State::read(const CaptureView& view) {
  drain_xid.reset();
  drain_until.reset();
  auto opening = open(view);
  co_await opening;
  if (!view.was_slot_made) co_await write(sql::slot_made);
  auto marking = renew_mark();
  co_await marking;
  auto told = say("on", std::nullopt);
  co_await told;
  const auto until = base::BootClock::now() + options.look;
  while (!is_stopping && is_leader() && base::BootClock::now() < until) {
    const bool is_all = reader.collect(view.key);
    auto taking = take_batch(view);
    co_await taking;
    if (is_all) {
      all_read_at = base::BootClock::now();
      auto waiting = reader.wait(until);
      co_await waiting;
    }
  }
}

Task<void> Capture::State::take_batch(const CaptureView& view) {
  if (!reader.batch().empty()) {
    if (view.is_wanted && view.state == "draining") {
      auto spilling = taker.spill(reader.batch());
      co_await spilling;
      series.spilled.add(static_cast<double>(reader.batch().size()));
    } else {
      auto taking = taker.take(reader.batch());
      co_await taking;
    }
    reader.batch_done();
  }
  reader.confirm();
}

Task<void> Capture::State::begin_drain(const CaptureView& view) {
  pg::Params off(int64_t{0});
  co_await write(sql::capture_for, std::move(off));
  mark_until = {};
  const auto settled = co_await link.run_one(sql::settled_xid);
  drain_xid = settled.get<int64_t>(0, 0);
  std::optional<std::string> reason;
  if (view.is_wanted && view.state != "draining") {
    series.fallbacks.add();
    reason = "the slot makes the server keep " + std::to_string(view.retained_bytes) +
             " bytes of its log, and may " + std::to_string(view.bytes_max) + ": emit() writes rows";
  }
  if (view.state == "draining") co_return;
  auto told = say("draining", reason);
  co_await told;
  if (!reason) co_return;
  auto alarming = alarm("outbox.capture_stopped", *reason);
  co_await alarming;
}

// First no new messages, then the transactions that may have written some end, then the slot is read up to
// there, then it goes.
Task<void> Capture::State::drain(const CaptureView& view) {
  if (!drain_xid) {
    auto beginning = begin_drain(view);
    co_await beginning;
    co_return;
  }
  auto opening = open(view);
  co_await opening;
  if (!drain_until) {
    pg::Params xid(*drain_xid);
    const auto settled = co_await link.run_one(sql::is_settled, std::move(xid));
    if (settled.get<bool>(0, 0)) drain_until = parse_lsn(settled.get<std::string_view>(0, 1));
  }
  bool is_all = false;
  while (!is_all && !is_stopping && is_leader()) {
    is_all = reader.collect(view.key);
    auto taking = take_batch(view);
    co_await taking;
  }
  if (drain_until && is_all && reader.done() >= *drain_until) {
    auto dropping = drop(view);
    co_await dropping;
    co_return;
  }
  reader.confirm(true);
  auto waiting = reader.wait(base::BootClock::now() + kDrainLook);
  co_await waiting;
}

Task<void> Capture::State::drop(const CaptureView& view) {
  stop_reading();
  while (!is_stopping && is_leader()) {  // until the server has seen that nobody reads it
    bool is_in_use = false;
    try {
      pg::Params name(view.slot_name);
      co_await write(sql::drop_slot, std::move(name));
    } catch (const pg::Error& error) {
      if (error.sqlstate() != kInUse) throw;
      is_in_use = true;
    }
    if (!is_in_use) break;
    co_await wakeup.wait_for(kDrainLook);
  }
  co_await write(sql::slot_dropped);
  drain_xid.reset();
  drain_until.reset();
  rest_until = base::BootClock::now() + options.rest;
  std::optional<std::string> reason;
  if (view.is_wanted)
    reason = "the slot was over its limit and is dropped; nothing is lost: emit() writes rows";
  auto told = say(view.is_wanted ? "fallback" : "off", reason);
  co_await told;
}

void Capture::State::stop_reading() {
  reader.close();
  drain_until.reset();
  mark_until = {};
}

CaptureOptions capture_options(const std::string& name, const std::string& url, const MoveLimits& limits) {
  CaptureOptions options;
  options.name = name;
  options.connect.url = url;
  options.connect.application_name = "postrider capture";
  options.rows_max = limits.rows_max;
  options.bytes_max = limits.bytes_max;
  return options;
}

Capture::Capture(CaptureTools tools, CaptureOptions options, base::UniqueFunction<bool()> is_leader)
    : state_(std::make_unique<State>(tools, std::move(options), std::move(is_leader))) {}

Capture::~Capture() = default;

void Capture::start() {
  state_->tasks.spawn(state_->run());
}

Task<void> Capture::stop() {
  state_->is_stopping = true;
  state_->wakeup.notify();
  state_->reader.interrupt();
  co_await state_->tasks.join();
  state_->stop_reading();
}

Task<void> Capture::run_once() {
  auto once = state_->pass();
  co_await once;
}

}  // namespace postrider::outbox
