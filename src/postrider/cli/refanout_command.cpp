// `postrider outbox refanout`: works on the database itself, with this machine's settings: what it repairs
// may be what keeps nodes from working.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "postrider/cli/groups.hpp"
#include "postrider/cli/human.hpp"
#include "postrider/cli/invocation.hpp"
#include "postrider/cli/machine_user.hpp"
#include "postrider/cli/progress.hpp"
#include "postrider/model/id_time.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/outbox/processed.hpp"
#include "postrider/outbox/sources.hpp"
#include "postrider/pg/private_cluster.hpp"
#include "postrider/registry/audit.hpp"
#include "postrider/registry/startup.hpp"
#include "postrider/replay/refanout.hpp"
#include "postrider/runtime/run_blocking.hpp"
#include "postrider/server/database.hpp"
#include "postrider/upkeep/archive.hpp"

namespace postrider::cli {

namespace {

using replay::Refanout;
using replay::Standing;
using runtime::Task;

constexpr auto kDatabaseWait = std::chrono::seconds(10);
constexpr uint64_t kParts = 1'000;  // of the progress bar
constexpr double kRateMin = 0.001;
constexpr double kRateMax = 100'000;

struct Asked {
  replay::RefanoutRange range;
  replay::RefanoutOptions options;
  bool has_until = true;
  std::vector<std::string> archives;
  std::optional<std::string> reason;
  std::vector<config::OutboxConfig> configured;  // outboxes that the file names
};

base::Timestamp read_time(Invocation& in, std::string_view name) {
  const auto time = parse_time(*in.value(name), base::wall_now());
  if (!time)
    throw Misuse("Invalid value \"" + *in.value(name) + "\" for " + std::string(name) +
                 ": must be a time such as 2d, 2026-04-08 or 2026-04-08T10:15:30Z.");
  return *time;
}

double read_rate(const std::string& text) {
  char* end = nullptr;
  const double rate = std::strtod(text.c_str(), &end);
  if (*end != '\0' || !(rate >= kRateMin && rate <= kRateMax))
    throw Misuse("--rate must be a number of deliveries per second, from 0.001 to 100000.");
  return rate;
}

Asked read_asked(Invocation& in) {
  Asked asked;
  asked.range.tenant = in.value("--tenant");
  asked.options.is_dry = in.has("--dry-run");
  asked.options.is_without_history = in.has("--without-history");
  asked.reason = in.value("--reason");
  if (const auto rate = in.value("--rate")) asked.options.rate_per_second = read_rate(*rate);
  for (const auto& file : in.values("--archive")) asked.archives.push_back(std::filesystem::absolute(file));
  if (!in.has("--from") && asked.archives.empty())
    throw Misuse(
        "--from is required: the time from which deliveries are recreated; or give files with --archive.");
  if (in.has("--from")) asked.range.since = read_time(in, "--from");
  if (in.has("--to")) {
    asked.range.until = read_time(in, "--to");
  } else if (asked.archives.empty()) {
    asked.has_until = false;
    asked.range.until = base::wall_now();
  } else {
    asked.range.until = *base::parse_rfc3339("9999-12-31T00:00:00Z");
  }
  if (asked.range.since >= asked.range.until) throw Misuse("--from must be before --to.");
  return asked;
}

// One bar per origin.
class ProgressPrinter {
 public:
  ProgressPrinter(const Asked& asked, const upkeep::ArchiveReader* file)
      : asked_(asked), file_(file), bar_("refanout", kParts) {}
  void operator()(const Standing& standing) {
    if (standing.is_resumed && !is_announced_)
      std::fprintf(stderr, "%s: continuing after %lld scanned and %lld created by an earlier run.\n",
                   standing.origin.c_str(), static_cast<long long>(standing.scanned),
                   static_cast<long long>(standing.queued));
    is_announced_ = true;
    bar_.say(fmt::format("{}: {} scanned, {} {}", std::filesystem::path(standing.origin).filename().string(),
                         standing.scanned, standing.queued, asked_.options.is_dry ? "to create" : "created"));
    bar_.update(part(standing));
  }
  void finish() {
    bar_.update(kParts);
    bar_.finish();
  }

 private:
  uint64_t part(const Standing& standing) const {
    if (file_ != nullptr) return file_->bytes() == 0 ? kParts : kParts * file_->bytes_read() / file_->bytes();
    base::Timestamp at = asked_.range.since;
    if (standing.after_time) at = *standing.after_time;
    if (standing.after_id) at = model::time_of(*standing.after_id);
    const auto all = asked_.range.until - asked_.range.since, done = at - asked_.range.since;
    return static_cast<uint64_t>(std::clamp(1.0 * done / all, 0.0, 1.0) * kParts);
  }

  const Asked& asked_;
  const upkeep::ArchiveReader* file_;
  Progress bar_;
  bool is_announced_ = false;
};

struct Summary {
  std::vector<Standing> places;
  std::vector<std::string> problems;
};

// Rows whose event is gone are given to the relay once more; everything else of them is its work.
Task<Standing> from_outbox(runtime::Loop& loop, Refanout& refanout, std::string name, std::string url) {
  pg::ConnectOptions connect;
  connect.url = std::move(url);
  connect.application_name = "postrider refanout";
  auto opening = pg::Connection::open(loop, connect);
  const auto connection = co_await opening;
  auto standing_now = refanout.stand("outbox:" + name);
  Standing standing = co_await standing_now;
  standing.is_of_rows = true;
  auto asking = refanout.kept_since();
  const auto kept = co_await asking;
  outbox::ProcessedSearch search;
  search.since = std::max(refanout.range().since, kept.events);
  search.until = refanout.range().until;
  search.tenant = refanout.range().tenant;
  search.rows_max = refanout.options().step_events_max;
  Refanout::Step step;
  do {
    search.after_time = standing.after_time.value_or(search.since);
    search.after_row = standing.after_row;
    pg::Batch batch = outbox::processed_batch(search);
    const auto answers = co_await connection->run(std::move(batch));
    const auto rows = outbox::read_processed(answers.front());
    Refanout::Named named;
    std::vector<int64_t> named_ids;
    for (const auto& row : rows) {
      if (!model::is_tenant_id(row.tenant_id) || !model::is_caller_id(row.event_id)) continue;
      named.tenants.push_back(row.tenant_id);
      named.events.push_back(row.event_id);
      named_ids.push_back(row.id);
    }
    auto looking = refanout.lost(std::move(named));
    const auto lost = co_await looking;
    std::vector<int64_t> ids;
    for (const size_t place : lost) ids.push_back(named_ids[place]);
    if (!ids.empty() && !refanout.options().is_dry) {
      pg::Batch again = outbox::process_again_batch(ids);
      co_await connection->run(std::move(again));
    }
    if (!rows.empty()) {
      standing.after_time = rows.back().processed_at;
      standing.after_row = rows.back().id;
    }
    step = {static_cast<int64_t>(rows.size()), static_cast<int64_t>(ids.size()),
            static_cast<int>(rows.size()) < search.rows_max};
    auto moving = refanout.move(standing, step);
    co_await moving;
  } while (!step.is_last);
  co_return standing;
}

struct Place {
  std::string name, url;  // without a URL: it could not be opened
};

Task<std::vector<Place>> outboxes(pg::Link& link, const Asked& asked, const crypto::MasterKeys& keys) {
  std::vector<Place> places;
  for (const auto& each : asked.configured) places.push_back({each.name, each.database_url});
  auto listing = outbox::list_sources(link);
  const auto sources = co_await listing;
  for (const auto& source : sources) {
    const auto is_same = [&](const Place& place) { return place.name == source.id; };
    if (std::any_of(places.begin(), places.end(), is_same)) continue;
    const auto url = outbox::open_url(keys, source);
    places.push_back({source.id, url ? *url : ""});
  }
  co_return places;
}

Task<void> from_outboxes(runtime::Loop& loop, pg::Link& link, Refanout& refanout, const Asked& asked,
                         const crypto::MasterKeys& keys, Summary& outcome) {
  auto listing = outboxes(link, asked, keys);
  const auto places = co_await listing;
  for (const Place& place : places) {
    ProgressPrinter printer(asked, nullptr);
    refanout.on_progress(std::ref(printer));
    try {
      if (place.url.empty()) throw pg::Error(pg::Kind::other, "its URL cannot be opened with the master key");
      auto reading = from_outbox(loop, refanout, place.name, place.url);
      const Standing standing = co_await reading;
      outcome.places.push_back(standing);
    } catch (const pg::Error& error) {
      if (!link.is_up()) throw;
      outcome.problems.push_back("the outbox " + place.name + " was left out: " + error.what());
    }
    printer.finish();
  }
}

// Before the first delivery is made, so that a run that is killed is in the audit log, too.
Task<void> write_down(pg::Link& link, const Asked& asked) {
  registry::Snapshot asked_for;
  asked_for.add("since", asked.range.since)
      .add("until", asked.range.until)
      .add("archives", asked.archives)
      .add("rate_per_second", asked.options.rate_per_second);
  pg::Batch batch;
  registry::add_audit(batch, machine_user(),
                      {.action = "refanout.start",
                       .tenant = asked.range.tenant,
                       .object = "refanout",
                       .after = std::move(asked_for),
                       .reason = asked.reason});
  co_await link.run(std::move(batch));
}

Task<Summary> refan_out(runtime::Loop& loop, pg::Link& link, Asked asked, const crypto::MasterKeys& keys) {
  Summary outcome;
  if (!asked.has_until) {
    auto asking = replay::unfinished_until(link, asked.range);
    const auto until = co_await asking;
    asked.range.until = until.value_or(asked.range.until);
  }
  Refanout refanout(loop, link, asked.range, asked.options);
  auto beginning = refanout.begin();
  const bool is_first = co_await beginning;
  if (!is_first) throw std::runtime_error("another refanout is at work on this database");
  if (!asked.options.is_dry) {
    auto writing = write_down(link, asked);
    co_await writing;
  }
  if (asked.archives.empty()) {
    auto others = from_outboxes(loop, link, refanout, asked, keys, outcome);
    co_await others;
    ProgressPrinter printer(asked, nullptr);
    refanout.on_progress(std::ref(printer));
    auto reading = refanout.from_events();
    const Standing standing = co_await reading;
    outcome.places.push_back(standing);
    printer.finish();
  }
  for (const std::string& path : asked.archives) {
    upkeep::ArchiveReader file(path);
    ProgressPrinter printer(asked, &file);
    refanout.on_progress(std::ref(printer));
    const replay::NextLine next_line = [&file](std::string& line) { return file.next(line); };
    auto reading = refanout.from_archive(path, next_line);
    const Standing standing = co_await reading;
    outcome.places.push_back(standing);
    for (const std::string& line : standing.first_rejected) outcome.problems.push_back("left out: " + line);
    if (standing.rejected > Standing::kShownMax)
      outcome.problems.push_back(fmt::format("left out: {} lines in all", standing.rejected));
    printer.finish();
  }
  co_return outcome;
}

Task<Summary> connect_and_refan_out(runtime::Loop& loop, pg::Link& link, Asked asked,
                                    const crypto::MasterKeys& keys) {
  link.start();
  std::exception_ptr error;
  Summary outcome;
  try {
    const auto deadline = base::BootClock::now() + kDatabaseWait;
    co_await link.wait_up(deadline);
    co_await registry::verify_master_key(link, keys);
    auto working = refan_out(loop, link, std::move(asked), keys);
    outcome = co_await working;
  } catch (...) {
    error = std::current_exception();
  }
  co_await link.stop();
  if (error) std::rethrow_exception(error);
  co_return outcome;
}

void print(const Asked& asked, const Summary& outcome) {
  const bool is_dry = asked.options.is_dry;
  for (const Standing& place : outcome.places) {
    const char* const what = place.is_of_rows ? "rows" : "events";
    const char* became = is_dry ? "deliveries would be created" : "deliveries created";
    if (place.is_of_rows)
      became = is_dry ? "would be published again by the relay" : "will be published again by the relay";
    std::printf("%s: %lld %s scanned, %lld %s\n", place.origin.c_str(), static_cast<long long>(place.scanned),
                what, static_cast<long long>(place.queued), became);
    for (const std::string& missing : place.first_missing) std::printf("  %s\n", missing.c_str());
    if (const int64_t more = place.queued - std::ssize(place.first_missing);
        more > 0 && !place.first_missing.empty())
      std::printf("  and %lld more\n", static_cast<long long>(more));
    if (place.unknown_before)
      std::fprintf(stderr,
                   "%s: skipped events before %s. Their attempts are past retain_attempts, so it is unknown "
                   "which were delivered. --without-history sends all of them again.\n",
                   place.origin.c_str(), base::to_rfc3339(*place.unknown_before).c_str());
  }
  for (const auto& problem : outcome.problems) std::fprintf(stderr, "postrider: %s\n", problem.c_str());
}

int refanout(Invocation& in) {
  Asked asked = read_asked(in);
  const config::Config config = in.settings().config;
  asked.configured = config.outboxes;
  const bool is_private = config.database_url.empty();
  const crypto::MasterKeys keys = server::load_master_keys(config, is_private);
  runtime::Loop loop;
  pg::LinkOptions options;
  options.connect.url = is_private                           ? pg::PrivateCluster::url_of(config.data_dir)
                        : config.direct_database_url.empty() ? config.database_url
                                                             : config.direct_database_url;
  options.connect.application_name = "postrider refanout";
  options.connect.plan_cache_mode = "force_custom_plan";
  pg::Link link(loop, options);
  const Summary outcome = runtime::run_blocking(loop, connect_and_refan_out(loop, link, asked, keys));
  print(asked, outcome);
  return outcome.problems.empty() ? done : failed;
}

}  // namespace

Command refanout_command() {
  return command(
             "refanout", "Recreate missing deliveries after data loss; continues where it was interrupted",
             {option("--from", "TIME",
                     "Events at or after this time: 2d, 2026-04-08 or an RFC 3339 timestamp"),
              option("--to", "TIME", "Events before this time (default: now)"),
              option("--tenant", "TENANT", "Only this tenant"),
              several_option("--archive", "FILE",
                             "Read archived events or outbox rows instead (several files)"),
              option("--rate", "N", "Maximum deliveries created per second (default: 1000)"), reason_option(),
              flag("--without-history",
                   "Include events whose attempts are past retain_attempts; all of them are sent again"),
              flag("--dry-run", "Create nothing; show how many deliveries are missing, and the first 20")},
             refanout, Needs::settings)
      .example("postrider outbox refanout --from 2026-04-08T10:00:00Z --dry-run")
      .example("postrider outbox refanout --from 2026-04-08T10:00:00Z --reason \"restored from backup\"");
}

}  // namespace postrider::cli
