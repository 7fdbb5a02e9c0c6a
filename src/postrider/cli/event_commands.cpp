// `postrider event`
#include <boost/json/serialize.hpp>

#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

namespace {

using Kind = Field::Kind;

const std::vector<Field>& fields() {
  static const std::vector<Field> all = {
      {Kind::text, "--id",
       "The event's id everywhere; a repeat with the same content is answered like the first"},
      {Kind::text, "--version", "Version of the type"},
      {Kind::text, "--occurred-at", "When it happened, RFC 3339; otherwise now"},
      {Kind::text, "--subject", "What it is about, to find it by later"},
  };
  return all;
}

// The data goes to the server as it was written: numbers too big for a double survive.
std::string body_with_data(const json::object& body, const std::string& data) {
  std::string text = json::serialize(body);
  text.pop_back();
  return text + ",\"data\":" + data + "}";
}

int publish(Invocation& in) {
  json::object body;
  body["type"] = in.argument("type");
  set_fields(in, fields(), body);
  std::string data = in.value("data").value_or("{}");
  if (data.starts_with('@')) data = read_text(data.substr(1));
  if (data == "-") data = read_text("-");
  read_json("<data>", data);  // for a message here rather than from the server
  RemoteCall call{"POST", Target("v1", "tenants", in.argument("tenant"), "events")};
  call.body = body_with_data(body, data);
  if (const auto key = in.value("--idempotency-key")) call.headers.emplace_back("idempotency-key", *key);
  in.out().record(in.server().call(call));
  return done;
}

int list(Invocation& in) {
  Target target("v1", "tenants", in.argument("tenant"), "events");
  target.with("type", in.value("--type"))
      .with("subject", in.value("--subject"))
      .with("since", in.value("--since"))
      .with("until", in.value("--until"));
  return show_list(in, target,
                   {{"ID", "/id"},
                    {"TYPE", "/type"},
                    {"VERSION", "/version"},
                    {"SUBJECT", "/subject"},
                    {"CREATED", "/created_at"}});
}

int show(Invocation& in) {
  const json::value event =
      in.server().get(Target("v1", "tenants", in.argument("tenant"), "events", in.argument("event")));
  if (in.as_json()) {
    in.out().json(event);
    return done;
  }
  json::object head = event.as_object();
  const json::value deliveries = head["deliveries"];
  const json::value unmatched = head["unmatched_endpoints"];
  head.erase("deliveries");
  head.erase("unmatched_endpoints");
  in.out().record(head);
  in.out().line("\nDeliveries");
  in.out().list(
      deliveries,
      {{"ID", "/id"}, {"ENDPOINT", "/endpoint_id"}, {"STATUS", "/status"}, {"ATTEMPTS", "/attempts"}});
  if (unmatched.as_array().empty()) return done;
  in.out().line("\nEndpoints that did not get it");
  in.out().list(unmatched, {{"ENDPOINT", "/endpoint_id"}, {"WHY", "/reason"}});
  return done;
}

}  // namespace

Command event_commands() {
  const Parameter tenant = argument("tenant", "The tenant's id");
  std::vector<Parameter> publish_parameters = {
      tenant, argument("type", "Event type, as invoice.paid"),
      optional_argument("data", "Its data: JSON, @FILE, or - for standard input. Default: {}.")};
  for (Parameter& parameter : field_parameters(fields())) publish_parameters.push_back(std::move(parameter));
  publish_parameters.push_back(
      option("--idempotency-key", "KEY", "A repeat with the same key is the same event"));
  std::vector<Parameter> filters = {tenant, option("--type", "TYPE", "Only this type"),
                                    option("--subject", "SUBJECT", "Only this subject"),
                                    option("--since", "TIME", "From this time on, RFC 3339"),
                                    option("--until", "TIME", "Before this time")};
  for (Parameter& parameter : list_parameters()) filters.push_back(std::move(parameter));
  filters.push_back(option("--format", "FORMAT", "The whole filtered list as ndjson or csv, as it comes"));
  return group("event", "Publish events and see what became of them",
               {command("publish", "Publish an event", publish_parameters, publish),
                command("list", "A tenant's events, newest first", filters, list),
                command("show", "One event: its deliveries, and which endpoints did not match and why",
                        {tenant, argument("event", "The event's id")}, show)});
}

}  // namespace postrider::cli
