// `postrider endpoint`
#include <algorithm>
#include <boost/json/array.hpp>

#include "postrider/cli/endpoint_view.hpp"
#include "postrider/cli/fields.hpp"
#include "postrider/cli/groups.hpp"
#include "postrider/cli/ids.hpp"
#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

namespace {

using Kind = Field::Kind;
using Shown = Column::Shown;

const std::vector<Field>& fields() {
  static const std::vector<Field> all = {
      {Kind::text,
       "--url",
       "URL that receives the deliveries, such as https://example.com/hooks",
       {},
       "",
       "URL"},
      {Kind::words,
       "--event-type",
       "Event type or pattern: invoice.paid, 'invoice.*' or '*' for all (repeatable)",
       {},
       "event_types",
       "TYPE"},
      {Kind::text, "--description", "Free-form description"},
      {Kind::integer, "--max-attempts", "Attempts before a delivery becomes a dead letter (default: 8)"},
      {Kind::milliseconds,
       "--timeout",
       "Time limit of one attempt, such as 10s (default: 10s)",
       {},
       "timeout_ms"},
      {Kind::seconds,
       "--give-up-after",
       "Stop retrying after this time, such as 3d (default: 3d)",
       {},
       "give_up_seconds"},
      {Kind::integer, "--max-in-flight", "Maximum concurrent deliveries (default: 10)"},
      {Kind::number, "--rate-per-second", "Maximum deliveries per second; `none` for no limit"},
      {Kind::text,
       "--ordering",
       "strict: deliver events one at a time, in order (default: none)",
       {"none", "strict"}},
      {Kind::json, "--retry-schedule",
       "[seconds, …] or {base_seconds, factor, cap_seconds}; `none` for the default schedule"},
      {Kind::text,
       "--on-rejected",
       "What to do after a 3xx or 4xx response (default: dead_letter)",
       {"dead_letter", "retry", "pause"}},
      {Kind::pairs,
       "--header",
       "Custom header to send (repeatable; replaces all custom headers)",
       {},
       "headers"},
      {Kind::text,
       "--signature",
       "Signature scheme (default: standard)",
       {"standard", "standard-ed25519", "hex-v1", "sha256"}},
      {Kind::words,
       "--allow-network",
       "Private network that its URL may reach, such as 10.1.2.0/24, besides those of the tenant "
       "(repeatable; "
       "replaces all networks; `none` for no networks; operators only)",
       {},
       "allow_networks",
       "NETWORK"},
      {Kind::json, "--metadata", "Any JSON object, or @FILE"},
  };
  return all;
}

Target all(const Invocation& in) {
  return Target("v1", "tenants", tenant_of(in), "endpoints");
}
template <class... Segments>
Target one(Invocation& in, const Segments&... below) {
  return Target("v1", "tenants", tenant_of(in), "endpoints", endpoint_of(in), below...);
}

int list(Invocation& in) {
  Target target = all(in);
  add_filters(in, target, {"event_type", "status", "url"});
  return show_list(in, target,
                   {{"ID", "/id", Style::id},
                    {"URL", "/url"},
                    {"EVENT TYPES", "/event_types"},
                    {"STATUS", "/status", Style::yes_no},
                    {"HEALTH", "/health", Style::yes_no},
                    {"PENDING", "/pending", Style::yes_no},
                    {"HELD", "/held_reason", Style::text, Shown::if_any},
                    {"AGE", "/created_at", Style::age, Shown::if_room},
                    {"REASON", "/status_reason", Style::text, Shown::wide},
                    {"BREAKER", "/breaker", Style::text, Shown::wide},
                    {"DESCRIPTION", "/description", Style::text, Shown::wide}},
                   "No endpoints found.");
}

void note_created(Invocation& in, const json::value& made) {
  if (!made.as_object().contains("secret")) return;
  in.out().note("Save this secret now. It will not be shown again.");
  in.out().note("Send a test: postrider endpoint test " + tenant_of(in) + " " + cell_text(made.at("id")));
}

int create(Invocation& in) {
  json::object body = read_document(in, fields());
  set_secret(in, body);
  const auto id = in.value("--id");
  const json::value made =
      id ? in.server().send("PUT", Target("v1", "tenants", tenant_of(in), "endpoints", *id), body)
         : in.server().send("POST", all(in), body);
  print_created_endpoint(in, made);
  note_created(in, made);
  return done;
}

int put(Invocation& in) {
  json::object body = read_document(in, fields());
  set_secret(in, body);
  const json::value made = in.server().send("PUT", one(in), body);
  print_endpoint(in, made);
  note_created(in, made);
  return done;
}

int show(Invocation& in) {
  print_endpoint(in, in.server().get(one(in)));
  return done;
}

// The patterns that an endpoint has, with those of --add-event-type and without those of --remove-event-type.
void change_subscriptions(Invocation& in) {
  const std::vector<std::string> added = in.values("--add-event-type"),
                                 removed = in.values("--remove-event-type");
  if (added.empty() && removed.empty()) return;
  const Target target = one(in, "subscriptions");
  const json::value before = in.server().get(target);
  json::array data;
  std::vector<std::string> known;
  for (const json::value& each : before.at("data").as_array()) {
    const std::string pattern(each.at("pattern").as_string());
    known.push_back(pattern);
    if (std::count(removed.begin(), removed.end(), pattern) == 0) data.push_back(each);
  }
  for (const std::string& pattern : removed)
    if (std::count(known.begin(), known.end(), pattern) == 0)
      throw Misuse("The endpoint is not subscribed to " + pattern + ".");
  for (const std::string& pattern : added)
    if (std::count(known.begin(), known.end(), pattern) == 0)
      data.push_back(json::object{{"pattern", pattern}});
  in.server().send("PUT", target, json::object{{"data", std::move(data)}});
}

int update(Invocation& in) {
  const json::object body = read_document(in, fields());
  change_subscriptions(in);
  print_endpoint(in, in.server().send("PATCH", one(in), body));
  return done;
}

int remove(Invocation& in) {
  in.confirm("Delete endpoint " + in.argument("endpoint") + " and cancel its pending deliveries?");
  const json::value response = in.server().call({"DELETE", one(in)});
  if (!in.out().is_for_people()) in.out().record(response);
  in.out().note("Deleted endpoint " + visible(in.argument("endpoint")) +
                ". Pending deliveries are canceled; the history is kept.");
  return done;
}

std::function<int(Invocation&)> act(const char* verb) {
  return [verb](Invocation& in) {
    print_endpoint_status(in, in.server().send("POST", one(in, verb), with_reason(in)));
    return done;
  };
}

int disable(Invocation& in) {
  in.confirm("Disable endpoint " + in.argument("endpoint") + "? Its queued deliveries become dead letters.");
  print_endpoint_status(in, in.server().send("POST", one(in, "disable"), with_reason(in)));
  return done;
}

int cancel_pending(Invocation& in) {
  in.confirm("Cancel every pending delivery of endpoint " + in.argument("endpoint") + "?");
  in.out().record(in.server().send("POST", one(in, "cancel-pending"), json::object()));
  return done;
}

// Exit code 1 if the receiver did not accept it, for scripts.
int test(Invocation& in) {
  json::object body;
  if (const auto type = in.value("--event-type")) body["event_type"] = *type;
  if (const auto version = in.value("--version")) body["version"] = *version;
  if (const auto data = in.value("--data")) body["data"] = read_json("--data", *data);
  if (in.has("--resume")) body["resume"] = true;
  const json::value exchange = in.server().send("POST", one(in, "test"), body);
  print_exchange(in, exchange);
  const json::value& resume = exchange.at("resume");
  if (resume == "resumed")
    in.out().note("Delivered: the endpoint is active again.");
  else if (resume == "offered")
    in.out().note(
        "Delivered. postrider had stopped this endpoint; add --resume to resume it after a successful test.");
  else if (resume == "by_hand")
    in.out().note(
        "Delivered. This endpoint was stopped manually; resume it with `postrider endpoint resume`.");
  return exchange.at("delivered").as_bool() ? done : failed;
}

const std::vector<Column>& subscription_columns() {
  static const std::vector<Column> all = {{"PATTERN", "/pattern"},
                                          {"ENABLED", "/enabled"},
                                          {"VERSIONS", "/versions", Style::text, Shown::if_any}};
  return all;
}

int show_subscriptions(Invocation& in) {
  in.out().list(in.server().get(one(in, "subscriptions")), subscription_columns(), "No subscriptions.");
  return done;
}

int change_subscription(Invocation& in) {
  json::object body;
  if (in.has("--enable")) body["enabled"] = true;
  if (in.has("--disable")) body["enabled"] = false;
  json::array versions;
  for (const std::string& version : in.values("--only-version")) versions.emplace_back(version);
  if (!versions.empty()) body["versions"] = std::move(versions);
  if (in.has("--all-versions")) body["versions"] = nullptr;
  if (body.empty())
    throw Misuse("Nothing to update: give --enable, --disable, --only-version or --all-versions.");
  in.out().record(in.server().send("PATCH", one(in, "subscriptions", in.argument("pattern")), body));
  return done;
}

int set_subscriptions(Invocation& in) {
  json::array data;
  for (const std::string& pattern : in.values("pattern")) data.push_back(json::object{{"pattern", pattern}});
  const json::value response =
      in.server().send("PUT", one(in, "subscriptions"), json::object{{"data", data}});
  in.out().list(response, subscription_columns());
  return done;
}

int list_secrets(Invocation& in) {
  in.out().list(in.server().get(one(in, "secrets")), {{"ID", "/id", Style::id},
                                                      {"SECRET", "/masked", Style::yes_no},
                                                      {"CURRENT", "/current"},
                                                      {"AGE", "/created_at", Style::age},
                                                      {"EXPIRES", "/expires_at", Style::age}});
  return done;
}

int rotate(Invocation& in) {
  json::object body;
  if (const auto overlap = in.duration("--overlap"))
    body["overlap_seconds"] = std::chrono::duration_cast<std::chrono::seconds>(*overlap).count();
  set_secret(in, body);
  print_new_secret(in, in.server().send("POST", one(in, "secrets", "rotate"), body));
  return done;
}

int end_secret(Invocation& in) {
  in.confirm("Stop signing with secret " + in.argument("secret") +
             " now? Receivers that still use it will reject deliveries.");
  in.server().call({"DELETE", one(in, "secrets", secret_of(in))});
  in.out().note("Deliveries are no longer signed with this secret.");
  return done;
}

std::vector<Command> subscription_commands(const Parameter& tenant, const Parameter& endpoint) {
  return {command("list", "List the endpoint's subscriptions", {tenant, endpoint}, show_subscriptions)
              .example("postrider endpoint subscriptions list acme hooks"),
          command("set", "Replace all subscriptions",
                  {tenant, endpoint, rest("pattern", "Types or patterns: invoice.paid, invoice.*, *")},
                  set_subscriptions)
              .example("postrider endpoint subscriptions set acme hooks invoice.paid 'order.*'"),
          command("update", "Enable, disable or limit one subscription",
                  {tenant, endpoint, argument("pattern", "Pattern of the subscription"),
                   flag("--enable", "Receive its events"), flag("--disable", "Do not receive its events"),
                   list_option("--only-version", "VERSION", "Receive only this version (repeatable)"),
                   flag("--all-versions", "Receive every version")},
                  change_subscription)
              .example("postrider endpoint subscriptions update acme hooks 'order.*' --disable")};
}

std::vector<Command> secret_commands(const Parameter& tenant, const Parameter& endpoint,
                                     const Parameter& secret_file) {
  return {command("list", "List the active secrets, masked", {tenant, endpoint}, list_secrets)
              .example("postrider endpoint secrets list acme hooks"),
          command("rotate", "Create a new secret; the old one also signs until the overlap ends",
                  {tenant, endpoint, overlap_option(), secret_file}, rotate)
              .example("postrider endpoint secrets rotate acme hooks --overlap 2d"),
          command("end", "End the overlap of an old secret now",
                  {tenant, endpoint, argument("secret", "ID of the secret"), yes_flag()}, end_secret)
              .example("postrider endpoint secrets end acme hooks sec_01980a6c7d5e7b0e9d0c2f6f8a4b3c21")};
}

std::vector<Parameter> list_filters(const Parameter& tenant) {
  return join({tenant, option("--event-type", "TYPE", "Only endpoints that receive this type"),
               choice("--status", {"active", "paused", "disabled"}, "Only with this status"),
               option("--url", "URL", "Only with this URL")},
              list_parameters());
}

std::vector<Command> basic_commands(const Parameter& tenant, const Parameter& endpoint,
                                    const Parameter& secret_file) {
  const std::vector<std::string> needed = {"--url", "--event-type"};
  const std::vector<Parameter> file = {json_file_option()};
  const std::vector<Parameter> changes = {
      list_option("--add-event-type", "TYPE", "Subscribe to this type or pattern as well (repeatable)"),
      list_option("--remove-event-type", "TYPE", "Unsubscribe from this type or pattern (repeatable)")};
  std::vector<Parameter> update_fields = field_parameters(fields());
  for (Parameter& parameter : update_fields)
    if (parameter.name == "--event-type")
      parameter.help = "Replace all subscriptions with this type or pattern (repeatable)";
  return {
      command("list", "List a tenant's endpoints", list_filters(tenant), list)
          .example("postrider endpoint list acme")
          .example("postrider endpoint list acme --event-type invoice.paid --status active"),
      command("create", "Create an endpoint (the signing secret is shown only once)",
              join({tenant, option("--id", "ID", "Endpoint ID of your choice")},
                   field_parameters(fields(), needed), std::vector{secret_file}, file),
              create)
          .example("postrider endpoint create acme --url https://example.com/hooks --event-type 'invoice.*'")
          .example("postrider endpoint create acme --id hooks --url https://example.com/hooks --event-type "
                   "'*' --timeout 5s"),
      command("put", "Create or replace the endpoint with this ID",
              join({tenant, endpoint}, field_parameters(fields(), needed), std::vector{secret_file}, file),
              put)
          .example("postrider endpoint put acme hooks --file endpoint.json"),
      command("show", "Show an endpoint: settings, status, health and queue",
              {tenant, endpoint, watch_flag()}, show)
          .example("postrider endpoint show acme hooks"),
      command("update", "Update the given fields", join({tenant, endpoint}, update_fields, changes, file),
              update)
          .example("postrider endpoint update acme hooks --max-in-flight 20")
          .example("postrider endpoint update acme hooks --add-event-type 'order.*'"),
      command("delete", "Delete an endpoint and cancel its pending deliveries",
              {tenant, endpoint, yes_flag()}, remove)
          .example("postrider endpoint delete acme hooks")};
}

}  // namespace

Command endpoint_commands() {
  const Parameter tenant = argument("tenant", "Tenant ID");
  const Parameter endpoint = argument("endpoint", "Endpoint ID");
  const Parameter secret_file =
      with_field(option("--secret-file", "FILE",
                        "Use the secret in this file instead of a generated one (- for standard input)"),
                 "secret");
  const std::vector<Parameter> status = {tenant, endpoint, reason_option()};
  std::vector<Command> commands = basic_commands(tenant, endpoint, secret_file);
  std::vector<Command> more = {
      command("pause", "Pause deliveries; events are queued", status, act("pause"))
          .example("postrider endpoint pause acme hooks --reason maintenance"),
      command("resume", "Resume deliveries to a paused or disabled endpoint", status, act("resume"))
          .example("postrider endpoint resume acme hooks"),
      command("disable", "Disable the endpoint; queued deliveries become dead letters",
              join(status, std::vector{yes_flag()}), disable)
          .example("postrider endpoint disable acme hooks --reason \"host was shut down\""),
      command("test", "Send a test event now and show the exchange (does not affect health or statistics)",
              {tenant, endpoint, option("--event-type", "TYPE", "Event type of the test"),
               option("--version", "VERSION", "Version of the type"),
               option("--data", "JSON", "Event data, or @FILE"),
               flag("--resume", "If it succeeds, resume an endpoint that postrider stopped")},
              test)
          .example("postrider endpoint test acme hooks")
          .example("postrider endpoint test acme hooks --event-type invoice.paid --data '{\"amount\": 1}'"),
      command("cancel-pending", "Cancel every pending delivery", {tenant, endpoint, yes_flag()},
              cancel_pending)
          .example("postrider endpoint cancel-pending acme hooks"),
      group("subscriptions", "Manage which events an endpoint receives",
            subscription_commands(tenant, endpoint)),
      group("secrets", "Manage the signing secrets of an endpoint",
            secret_commands(tenant, endpoint, secret_file))};
  for (Command& each : more) commands.push_back(std::move(each));
  return group("endpoint", "Manage endpoints, their subscriptions and secrets", std::move(commands));
}

}  // namespace postrider::cli
