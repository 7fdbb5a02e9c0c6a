// `postrider event`
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

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
      {Kind::text, "--id", "Event ID; publishing the same ID and content again has no effect"},
      {Kind::text, "--version", "Version of the event type"},
      {Kind::time, "--occurred-at", "When it happened (default: now)"},
      {Kind::text, "--subject", "What the event is about, to find it later: invoice-17"},
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
  read_json("<data>", data);  // for an error here rather than from the server
  RemoteCall call{"POST", Target("v1", "tenants", tenant_of(in), "events")};
  call.body = body_with_data(body, data);
  if (const auto key = in.value("--idempotency-key")) call.headers.emplace_back("idempotency-key", *key);
  const json::value response = in.server().call(call);
  in.out().record(response, {{"", {"id", "type", "tenant_id", "created_at", "deliveries"}}});
  const std::string show = "postrider event show " + tenant_of(in) + " " + cell_text(response.at("id"));
  in.out().note(response.at("deliveries") == 0 ? "No endpoint receives this event. To see why: " + show
                                               : "See its deliveries: " + show);
  return done;
}

int list(Invocation& in) {
  Target target("v1", "tenants", tenant_of(in), "events");
  target.with("type", in.value("--event-type"));
  add_filters(in, target, {"subject", "since", "until"});
  return show_list(in, target,
                   {{"ID", "/id", Style::id},
                    {"TYPE", "/type"},
                    {"VERSION", "/version", Style::text, Shown::if_any},
                    {"SUBJECT", "/subject", Style::text, Shown::if_any},
                    {"AGE", "/created_at", Style::age},
                    {"CREATED", "/created_at", Style::time, Shown::wide}},
                   "No events found.");
}

std::string why_unmatched(const json::value& reason) {
  if (reason == "no_subscription_matches") return "not subscribed to this event type";
  if (reason == "subscription_off") return "the subscription was disabled";
  if (reason == "version_not_wanted") return "not subscribed to this version";
  if (reason == "subscribed_later") return "subscribed after the event was published";
  if (reason == "endpoint_created_later") return "created after the event was published";
  if (reason == "endpoint_disabled") return "the endpoint was disabled";
  return cell_text(reason);
}

void print_deliveries(Invocation& in, const json::value& deliveries) {
  in.out().line("\nDeliveries");
  in.out().list(deliveries,
                {{"ID", "/id", Style::id},
                 {"ENDPOINT", "/endpoint_id", Style::id},
                 {"STATUS", "/status", Style::yes_no},
                 {"ATTEMPTS", "/attempts", Style::yes_no, Shown::if_room},
                 {"HTTP", "/last_status_code", Style::yes_no, Shown::if_any},
                 {"NEXT", "/next_attempt_at", Style::due, Shown::if_any}},
                "No endpoint received this event.");
}

int show(Invocation& in) {
  const json::value event = in.server().get(Target("v1", "tenants", tenant_of(in), "events", event_of(in)));
  if (!in.out().is_for_people()) {
    in.out().record(event);
    return done;
  }
  json::object head = event.as_object();
  const json::value deliveries = head["deliveries"];
  json::array unmatched = head["unmatched_endpoints"].as_array();
  for (const char* field : {"deliveries", "unmatched_endpoints", "explanation"}) head.erase(field);
  in.out().record(head,
                  {{"", {"id", "type", "version", "subject", "tenant_id", "created_at"}}, {"", {"data"}}});
  print_deliveries(in, deliveries);
  if (unmatched.empty()) return done;
  for (json::value& row : unmatched) row.as_object()["why"] = why_unmatched(row.at("reason"));
  in.out().line("\nEndpoints that did not receive it");
  in.out().list(unmatched, {{"ENDPOINT", "/endpoint_id", Style::id}, {"WHY", "/why"}});
  return done;
}

std::vector<Parameter> publish_parameters(const Parameter& tenant) {
  return join(
      {tenant, argument("type", "Event type, such as invoice.paid"),
       optional_argument("data", "Event data: JSON, @FILE, or - for standard input (default: {})")},
      field_parameters(fields()),
      std::vector{option("--idempotency-key", "KEY", "Publish only once, however often this is repeated")});
}

}  // namespace

Command publish_command() {
  Command made = command("publish", "Publish an event (same as `event publish`)",
                         publish_parameters(argument("tenant", "Tenant ID")), publish)
                     .example("postrider publish acme invoice.paid '{\"amount\": 4200}'");
  made.is_hidden = true;
  return made;
}

Command event_commands() {
  const Parameter tenant = argument("tenant", "Tenant ID");
  const std::vector<Parameter> filters =
      join({tenant, option("--event-type", "TYPE", "Only this event type"),
            option("--subject", "SUBJECT", "Only this subject")},
           period_options(), list_parameters(), std::vector{format_option()});
  return group("event", "Publish and inspect events",
               {command("publish", "Publish an event", publish_parameters(tenant), publish)
                    .example("postrider event publish acme invoice.paid '{\"amount\": 4200}'")
                    .example("postrider event publish acme invoice.paid @invoice.json --id inv-17-paid"),
                command("list", "List a tenant's events, newest first", filters, list)
                    .example("postrider event list acme --since 1h")
                    .example("postrider event list acme --event-type invoice.paid --format csv"),
                command("show", "Show an event, its deliveries, and why other endpoints did not receive it",
                        {tenant, argument("event", "Event ID"), watch_flag()}, show)
                    .example("postrider event show acme inv-17-paid")});
}

}  // namespace postrider::cli
