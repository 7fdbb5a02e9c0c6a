// `postrider replay`
#include <chrono>
#include <thread>

#include "postrider/base/time.hpp"
#include "postrider/cli/fields.hpp"
#include "postrider/cli/groups.hpp"
#include "postrider/cli/ids.hpp"
#include "postrider/cli/invocation.hpp"
#include "postrider/cli/progress.hpp"

namespace postrider::cli {

namespace {

using namespace std::chrono_literals;
using Kind = Field::Kind;

const std::vector<Field>& fields() {
  static const std::vector<Field> all = {
      {Kind::text, "--only", "What to send again (default: failed)", {"failed", "missing", "all"}},
      {Kind::text, "--endpoint", "Only to this endpoint", {}, "", "ENDPOINT"},
      {Kind::words,
       "--event-type",
       "Only this event type or pattern (repeatable)",
       {},
       "event_types",
       "TYPE"},
      {Kind::time, "--since", "Events at or after this time: 1h, 2d, 2026-04-08 or an RFC 3339 timestamp"},
      {Kind::time, "--until", "Events before this time (default: now)"},
      {Kind::number, "--rate-per-second", "New deliveries per second (default: 50)"},
      {Kind::text, "--reason", "Why; recorded with the replay and in the audit log"},
  };
  return all;
}

const Layout& layout() {
  static const Layout all = {
      {"", {"id", "status", "reason", "matched", "queued", "delivered", "failed", "canceled", "pending"}},
      {"Selection", {"only", "endpoint", "event_types", "since", "until", "rate_per_second"}},
      {"History", {"requested_by", "on_behalf_of", "created_at", "started_at", "finished_at"}},
      {"-", {"kind", "is_counted"}}};
  return all;
}

Target target_of(Invocation& in, const std::string& id) {
  return Target("v1", "tenants", tenant_of(in), "replays", id);
}

bool is_over(const json::object& replay) {
  const std::string_view status = replay.at("status").as_string();
  return (status == "completed" || status == "canceled") && replay.at("pending").to_number<int64_t>() == 0;
}

// Until every delivery has ended.
int wait_for(Invocation& in, const std::string& id) {
  Progress progress("replayed");
  while (true) {
    const json::value response = in.server().get(target_of(in, id));
    const json::object& replay = response.as_object();
    if (replay.at("is_counted").as_bool()) progress.set_total(replay.at("matched").to_number<uint64_t>());
    progress.update(replay.at("delivered").to_number<uint64_t>() + replay.at("failed").to_number<uint64_t>());
    if (is_over(replay)) {
      progress.finish();
      in.out().record(response, layout());
      return replay.at("failed").to_number<int64_t>() == 0 ? done : failed;
    }
    std::this_thread::sleep_for(500ms);
  }
}

int create(Invocation& in) {
  json::object body = read_document(in, fields());
  if (!body.contains("only")) body["only"] = "failed";
  if (const auto endpoint = endpoint_filter(in, tenant_of(in))) body["endpoint"] = *endpoint;
  if (in.has("--dry-run")) body["dry_run"] = true;
  const json::value response =
      in.server().send("POST", Target("v1", "tenants", in.argument("tenant"), "replays"), body);
  if (in.has("--wait") && !in.has("--dry-run"))
    return wait_for(in, std::string(response.as_object().at("id").as_string()));
  in.out().record(response, in.has("--dry-run") ? Layout{{"", {"matched", "is_complete"}}} : layout());
  if (in.has("--dry-run")) in.out().note("Nothing was sent. Run it again without --dry-run to replay.");
  return done;
}

int list(Invocation& in) {
  Target target("v1", "tenants", tenant_of(in), "replays");
  add_filters(in, target, {"status"});
  return show_list(in, target,
                   {{"ID", "/id", Style::id},
                    {"STATUS", "/status", Style::yes_no},
                    {"ONLY", "/only", Style::yes_no},
                    {"MATCHED", "/matched", Style::yes_no},
                    {"DELIVERED", "/delivered", Style::yes_no},
                    {"FAILED", "/failed", Style::yes_no},
                    {"REASON", "/reason"},
                    {"AGE", "/created_at", Style::age},
                    {"QUEUED", "/queued", Style::yes_no, Column::Shown::wide},
                    {"CREATED", "/created_at", Style::time, Column::Shown::wide}},
                   "No replays found.");
}

int show(Invocation& in) {
  const std::string id = replay_of(in);
  if (in.has("--wait")) return wait_for(in, id);
  in.out().record(in.server().get(target_of(in, id)), layout());
  return done;
}

int cancel(Invocation& in) {
  const std::string id = replay_of(in);
  in.confirm("Cancel replay " + id + "? Deliveries that it already created continue.");
  const Target target("v1", "tenants", tenant_of(in), "replays", id, "cancel");
  in.out().record(in.server().send("POST", target, with_reason(in)), layout());
  return done;
}

}  // namespace

Command replay_commands() {
  const Parameter tenant = argument("tenant", "Tenant ID");
  const Parameter replay = argument("replay", "Replay ID, rpl_…");
  const Parameter wait = flag("--wait", "Wait until every delivery has ended; fails if one failed");
  return group("replay", "Send many deliveries again",
               {command("create", "Replay a tenant's dead letters, missing deliveries, or everything",
                        join({tenant}, field_parameters(fields(), {"--since"}),
                             std::vector{json_file_option(),
                                         flag("--dry-run", "Only count what would be replayed"), wait}),
                        create)
                    .example("postrider replay create acme --only failed --since 2h --dry-run")
                    .example("postrider replay create acme --only failed --since 2h --reason outage --wait"),
                command("list", "List a tenant's replays, newest first",
                        join({tenant, choice("--status", {"queued", "running", "completed", "canceled"},
                                             "Only with this status")},
                             list_parameters()),
                        list)
                    .example("postrider replay list acme"),
                command("show", "Show a replay and its progress", {tenant, replay, wait, watch_flag()}, show)
                    .example("postrider replay show acme rpl_01980a6c7d5e7b0e9d0c2f6f8a4b3c21"),
                command("cancel", "Stop a replay; deliveries already created continue",
                        {tenant, replay, reason_option(), yes_flag()}, cancel)
                    .example("postrider replay cancel acme rpl_01980a6c7d5e7b0e9d0c2f6f8a4b3c21")});
}

}  // namespace postrider::cli
