// `postrider endpoint`
#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

namespace {

using Kind = Field::Kind;

const std::vector<Field>& fields() {
  static const std::vector<Field> all = {
      {Kind::text, "--url", "Where deliveries go"},
      {Kind::words,
       "--event-type",
       "Type or pattern (invoice.paid, invoice.*, *); may be repeated",
       {},
       "event_types"},
      {Kind::text, "--description", "For people"},
      {Kind::integer, "--max-attempts", "Attempts before it is a dead letter. Default: 8."},
      {Kind::integer, "--timeout-ms", "For one attempt, everything together. Default: 10000."},
      {Kind::integer, "--give-up-seconds", "Age at which retrying ends. Default: 259200."},
      {Kind::integer, "--max-in-flight", "Deliveries under way at once. Default: 10."},
      {Kind::number, "--rate-per-second", "Deliveries per second; `none`: no limit"},
      {Kind::text, "--ordering", "Whether one waits for the one before", {"none", "strict"}},
      {Kind::json, "--retry-schedule",
       "[seconds, …] or {base_seconds, factor, cap_seconds}; `none`: default"},
      {Kind::text, "--on-rejected", "What a 4xx does", {"dead_letter", "retry", "pause"}},
      {Kind::pairs, "--header", "Header to send along, NAME=VALUE; may be repeated", {}, "headers"},
      {Kind::text, "--signature", "Scheme", {"standard", "standard-ed25519", "hex-v1", "sha256"}},
      {Kind::json, "--metadata", "Any JSON object, or @FILE"},
  };
  return all;
}

std::vector<Parameter> with_fields(std::vector<Parameter> first) {
  for (Parameter& parameter : field_parameters(fields())) first.push_back(std::move(parameter));
  first.push_back(option("--file", "FILE", "The fields as a JSON document; - reads standard input"));
  return first;
}

Target all(const Invocation& in) {
  return Target("v1", "tenants", in.argument("tenant"), "endpoints");
}
template <class... Segments>
Target one(const Invocation& in, const Segments&... below) {
  return Target("v1", "tenants", in.argument("tenant"), "endpoints", in.argument("endpoint"), below...);
}

// --secret-file rather than --secret: command lines are there for everybody to see.
void set_secret(const Invocation& in, json::object& body) {
  const auto file = in.value("--secret-file");
  if (!file) return;
  std::string secret = read_text(*file);
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  body["secret"] = secret;
}

int list(Invocation& in) {
  Target target = all(in);
  target.with("event_type", in.value("--event-type"))
      .with("status", in.value("--status"))
      .with("url", in.value("--url"));
  return show_list(in, target,
                   {{"ID", "/id"},
                    {"URL", "/url"},
                    {"EVENT TYPES", "/event_types"},
                    {"STATUS", "/status"},
                    {"HEALTH", "/health"},
                    {"PENDING", "/pending"},
                    {"HELD", "/held_reason"}});
}

int create(Invocation& in) {
  json::object body = read_document(in, fields());
  set_secret(in, body);
  const auto id = in.value("--id");
  const json::value made =
      id ? in.server().send("PUT", Target("v1", "tenants", in.argument("tenant"), "endpoints", *id), body)
         : in.server().send("POST", all(in), body);
  in.out().record(made);
  if (made.as_object().contains("secret")) in.out().note("The secret is shown only now.");
  return done;
}

int put(Invocation& in) {
  json::object body = read_document(in, fields());
  set_secret(in, body);
  in.out().record(in.server().send("PUT", one(in), body));
  return done;
}

int show(Invocation& in) {
  in.out().record(in.server().get(one(in)));
  return done;
}

int update(Invocation& in) {
  in.out().record(in.server().send("PATCH", one(in), read_document(in, fields())));
  return done;
}

int remove(Invocation& in) {
  in.out().record(in.server().call({"DELETE", one(in)}));
  in.out().note("Deleted. Pending deliveries are canceled; history stays.");
  return done;
}

std::function<int(Invocation&)> act(const char* verb) {
  return [verb](Invocation& in) {
    json::object body;
    if (const auto reason = in.value("--reason")) body["reason"] = *reason;
    in.out().record(in.server().send("POST", one(in, verb), body));
    return done;
  };
}

int cancel_pending(Invocation& in) {
  in.out().record(in.server().send("POST", one(in, "cancel-pending"), json::object()));
  return done;
}

// Exit code 1 when the receiver did not take it, so that scripts can ask.
int test(Invocation& in) {
  json::object body;
  if (const auto type = in.value("--event-type")) body["event_type"] = *type;
  if (const auto version = in.value("--version")) body["version"] = *version;
  if (const auto data = in.value("--data")) body["data"] = read_json("--data", *data);
  if (in.has("--resume")) body["resume"] = true;
  const json::value exchange = in.server().send("POST", one(in, "test"), body);
  in.out().record(exchange);
  const json::value& resume = exchange.at("resume");
  if (resume == "resumed")
    in.out().note("Delivered: the endpoint is active again.");
  else if (resume == "offered")
    in.out().note(
        "Delivered. postrider had stopped this endpoint; --resume lets a delivered test resume it.");
  else if (resume == "by_hand")
    in.out().note("Delivered. This endpoint was stopped by hand; `endpoint resume` starts it again.");
  return exchange.at("delivered").as_bool() ? done : failed;
}

int show_subscriptions(Invocation& in) {
  in.out().list(in.server().get(one(in, "subscriptions")),
                {{"PATTERN", "/pattern"}, {"ENABLED", "/enabled"}, {"VERSIONS", "/versions"}});
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
  if (body.empty()) throw Misuse("Nothing to change: --enable, --disable, --only-version or --all-versions.");
  in.out().record(in.server().send("PATCH", one(in, "subscriptions", in.argument("pattern")), body));
  return done;
}

int set_subscriptions(Invocation& in) {
  json::array data;
  for (const std::string& pattern : in.values("pattern")) data.push_back(json::object{{"pattern", pattern}});
  const json::value answer = in.server().send("PUT", one(in, "subscriptions"), json::object{{"data", data}});
  in.out().list(answer, {{"PATTERN", "/pattern"}, {"ENABLED", "/enabled"}, {"VERSIONS", "/versions"}});
  return done;
}

int list_secrets(Invocation& in) {
  in.out().list(in.server().get(one(in, "secrets")), {{"ID", "/id"},
                                                      {"SECRET", "/masked"},
                                                      {"CURRENT", "/current"},
                                                      {"CREATED", "/created_at"},
                                                      {"ENDS", "/expires_at"}});
  return done;
}

int rotate(Invocation& in) {
  json::object body;
  if (const auto overlap = in.integer("--overlap-seconds")) body["overlap_seconds"] = *overlap;
  set_secret(in, body);
  in.out().record(in.server().send("POST", one(in, "secrets", "rotate"), body));
  in.out().note("The secret is shown only now.");
  return done;
}

int end_secret(Invocation& in) {
  in.server().call({"DELETE", one(in, "secrets", in.argument("secret"))});
  in.out().note("The secret no longer signs.");
  return done;
}

std::vector<Command> subscription_commands(const Parameter& tenant, const Parameter& endpoint) {
  return {command("list", "What the endpoint gets", {tenant, endpoint}, show_subscriptions),
          command("set", "Replace all of them",
                  {tenant, endpoint, rest("pattern", "Types or patterns: invoice.paid, invoice.*, *")},
                  set_subscriptions),
          command("update", "Change one",
                  {tenant, endpoint, argument("pattern", "The subscription's pattern"),
                   flag("--enable", "Get its events"), flag("--disable", "Get none of them"),
                   list_option("--only-version", "VERSION", "Get this version; may be repeated"),
                   flag("--all-versions", "Get every version")},
                  change_subscription)};
}

std::vector<Command> secret_commands(const Parameter& tenant, const Parameter& endpoint,
                                     const Parameter& secret_file) {
  return {command("list", "Active secrets, masked", {tenant, endpoint}, list_secrets),
          command("rotate", "Sign with a new secret, and with the old one for a while",
                  {tenant, endpoint, option("--overlap-seconds", "N", "How long both sign. Default: 86400."),
                   secret_file},
                  rotate),
          command("end", "End an old secret's overlap at once",
                  {tenant, endpoint, argument("secret", "The secret's id")}, end_secret)};
}

std::vector<Parameter> filters(const Parameter& tenant) {
  std::vector<Parameter> all = {tenant, option("--event-type", "TYPE", "Only those that get this type"),
                                choice("--status", {"active", "paused", "disabled"}, "Only those"),
                                option("--url", "URL", "Only those that go there")};
  for (Parameter& parameter : list_parameters()) all.push_back(std::move(parameter));
  return all;
}

}  // namespace

Command endpoint_commands() {
  const Parameter tenant = argument("tenant", "The tenant's id");
  const Parameter endpoint = argument("endpoint", "The endpoint's id");
  const Parameter reason = option("--reason", "TEXT", "Why; shown with the status and in the audit log");
  const Parameter secret_file =
      option("--secret-file", "FILE", "Use this secret instead of a new one; - reads standard input");
  const std::vector<Parameter> status = {tenant, endpoint, reason};
  return group(
      "endpoint", "Endpoints, their subscriptions and secrets",
      {command("list", "A tenant's endpoints", filters(tenant), list),
       command("create", "Make an endpoint; its secret is shown once",
               with_fields({tenant, option("--id", "ID", "An id of your own"), secret_file}), create),
       command("put", "Make an endpoint with an id of your own, or turn it into this",
               with_fields({tenant, endpoint, secret_file}), put),
       command("show", "One endpoint: settings, status, health, what is pending", {tenant, endpoint}, show),
       command("update", "Change what is given, leave the rest", with_fields({tenant, endpoint}), update),
       command("delete", "Delete it; what is pending is canceled", {tenant, endpoint}, remove),
       command("pause", "Send nothing; events queue", status, act("pause")),
       command("resume", "Send again, also after it was disabled", status, act("resume")),
       command("disable", "Queue nothing; what was queued becomes dead letters", status, act("disable")),
       command("test", "Send a sample now and show the exchange; it counts for nothing",
               {tenant, endpoint, option("--event-type", "TYPE", "Its type"),
                option("--version", "VERSION", "Its version"), option("--data", "JSON", "Its data, or @FILE"),
                flag("--resume", "If it is delivered, resume an endpoint that postrider itself had stopped")},
               test),
       command("cancel-pending", "Cancel every delivery that is pending now", {tenant, endpoint},
               cancel_pending),
       group("subscriptions", "Which events it gets", subscription_commands(tenant, endpoint)),
       group("secrets", "What signs its deliveries", secret_commands(tenant, endpoint, secret_file))});
}

}  // namespace postrider::cli
