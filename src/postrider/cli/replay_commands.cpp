// `postrider replay`
#include <chrono>
#include <thread>

#include "postrider/base/time.hpp"
#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"
#include "postrider/cli/progress.hpp"

namespace postrider::cli {

namespace {

using namespace std::chrono_literals;
using Kind = Field::Kind;

const std::vector<Field>& fields() {
  static const std::vector<Field> all = {
      {Kind::text, "--only", "What to send again", {"failed", "missing", "all"}},
      {Kind::text, "--endpoint", "Only for this endpoint"},
      {Kind::words, "--event-types", "Only these types or patterns"},
      {Kind::text, "--since", "From this time on, RFC 3339"},
      {Kind::text, "--until", "Before this time. Default: now."},
      {Kind::number, "--rate-per-second", "New deliveries per second. Default: 50."},
      {Kind::text, "--reason", "Why; it is kept with the replay and in the audit log"},
  };
  return all;
}

Target target_of(Invocation& in, const std::string& id) {
  return Target("v1", "tenants", in.argument("tenant"), "replays", id);
}

bool is_over(const json::object& replay) {
  const std::string_view status = replay.at("status").as_string();
  return (status == "completed" || status == "canceled") && replay.at("pending").to_number<int64_t>() == 0;
}

// Until everything of it has ended.
int watch(Invocation& in, const std::string& id) {
  Progress progress("replayed");
  while (true) {
    const json::value answer = in.server().get(target_of(in, id));
    const json::object& replay = answer.as_object();
    if (replay.at("is_counted").as_bool()) progress.set_total(replay.at("matched").to_number<uint64_t>());
    progress.update(replay.at("delivered").to_number<uint64_t>() + replay.at("failed").to_number<uint64_t>());
    if (is_over(replay)) {
      progress.finish();
      in.out().record(answer);
      return replay.at("failed").to_number<int64_t>() == 0 ? done : failed;
    }
    std::this_thread::sleep_for(500ms);
  }
}

int create(Invocation& in) {
  json::object body = read_document(in, fields());
  if (!body.contains("only")) body["only"] = "failed";
  if (in.has("--dry-run")) body["dry_run"] = true;
  const json::value answer =
      in.server().send("POST", Target("v1", "tenants", in.argument("tenant"), "replays"), body);
  if (in.has("--wait") && !in.has("--dry-run"))
    return watch(in, std::string(answer.as_object().at("id").as_string()));
  in.out().record(answer);
  return done;
}

int list(Invocation& in) {
  Target target("v1", "tenants", in.argument("tenant"), "replays");
  target.with("status", in.value("--status"));
  return show_list(in, target,
                   {{"ID", "/id"},
                    {"STATUS", "/status"},
                    {"ONLY", "/only"},
                    {"MATCHED", "/matched"},
                    {"QUEUED", "/queued"},
                    {"DELIVERED", "/delivered"},
                    {"FAILED", "/failed"},
                    {"REASON", "/reason"},
                    {"CREATED", "/created_at"}});
}

int show(Invocation& in) {
  const std::string id = in.argument("replay");
  if (in.has("--wait")) return watch(in, id);
  in.out().record(in.server().get(target_of(in, id)));
  return done;
}

int cancel(Invocation& in) {
  json::object body;
  if (const auto reason = in.value("--reason")) body["reason"] = *reason;
  const Target target("v1", "tenants", in.argument("tenant"), "replays", in.argument("replay"), "cancel");
  in.out().record(in.server().send("POST", target, body));
  return done;
}

}  // namespace

Command replay_commands() {
  const Parameter tenant = argument("tenant", "The tenant's id");
  const Parameter replay = argument("replay", "The replay's id");
  const Parameter wait = flag("--wait", "Until everything of it has ended; fails if something did");
  std::vector<Parameter> create_parameters = {
      tenant, option("--file", "FILE", "The request as JSON; - for standard input"),
      flag("--dry-run", "Only say how many match"), wait};
  for (Parameter& parameter : field_parameters(fields())) create_parameters.push_back(std::move(parameter));
  std::vector<Parameter> filters = {
      tenant, choice("--status", {"queued", "running", "completed", "canceled"}, "Only these")};
  for (Parameter& parameter : list_parameters()) filters.push_back(std::move(parameter));
  return group("replay", "Send many deliveries again",
               {command("create", "Replay what matches: dead letters, missing ones, or everything",
                        create_parameters, create),
                command("list", "A tenant's replays, newest first", filters, list),
                command("show", "One replay and how far it is", {tenant, replay, wait}, show),
                command("cancel", "Make no more deliveries",
                        {tenant, replay, option("--reason", "TEXT", "Why")}, cancel)});
}

}  // namespace postrider::cli
