// `postrider delivery`
#include "postrider/cli/delivery_view.hpp"
#include "postrider/cli/groups.hpp"
#include "postrider/cli/ids.hpp"
#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

namespace {

using Shown = Column::Shown;

std::string delivery_of(Invocation& in) {
  return delivery_id(in, in.argument("delivery"));
}

void add_delivery_filters(Invocation& in, Target& target) {
  const auto tenant = in.value("--tenant");
  target.with("endpoint", endpoint_filter(in, tenant))
      .with("event", event_filter(in, tenant))
      .with("type", in.value("--event-type"));
}

int list(Invocation& in) {
  Target target = below_tenant(in, "deliveries");
  add_delivery_filters(in, target);
  add_filters(in, target, {"subject", "status", "since", "until"});
  return show_list(in, target,
                   {{"ID", "/id", Style::id},
                    {"TENANT", "/tenant_id", Style::text, in.has("--tenant") ? Shown::wide : Shown::always},
                    {"TYPE", "/event_type"},
                    {"ENDPOINT", "/endpoint_id", Style::id},
                    {"STATUS", "/status", Style::yes_no},
                    {"ATTEMPTS", "/attempts", Style::yes_no, Shown::if_room},
                    {"RESULT", "/result"},
                    {"AGE", "/created_at", Style::age},
                    {"NEXT", "/next_attempt_at", Style::due, Shown::if_any},
                    {"WAITING FOR", "/waiting_for", Style::text, Shown::if_any},
                    {"EVENT", "/event_id", Style::id, Shown::wide},
                    {"SUBJECT", "/subject", Style::text, Shown::wide},
                    {"URL", "/url", Style::text, Shown::wide},
                    {"CREATED", "/created_at", Style::time, Shown::wide}},
                   "No deliveries found.", add_result);
}

int show(Invocation& in) {
  print_delivery(in, in.server().get(below_tenant(in, "deliveries", delivery_of(in))));
  return done;
}

int list_attempts(Invocation& in) {
  Target target = below_tenant(in, "attempts");
  add_delivery_filters(in, target);
  add_filters(in, target, {"outcome", "error", "status_code", "since", "until"});
  return show_list(in, target,
                   {{"DELIVERY", "/delivery_id", Style::id},
                    {"#", "/attempt", Style::yes_no},
                    {"TENANT", "/tenant_id", Style::text, in.has("--tenant") ? Shown::wide : Shown::always},
                    {"TYPE", "/event_type"},
                    {"ENDPOINT", "/endpoint_id", Style::id},
                    {"OUTCOME", "/outcome", Style::yes_no},
                    {"HTTP", "/status_code", Style::yes_no},
                    {"TIME", "/phases/total_us", Style::microseconds},
                    {"AGE", "/started_at", Style::age},
                    {"ERROR", "/error_detail", Style::text, Shown::if_room},
                    {"STARTED", "/started_at", Style::time, Shown::wide},
                    {"NODE", "/node", Style::text, Shown::wide}},
                   "No attempts found.");
}

int cancel(Invocation& in) {
  const std::string id = delivery_of(in);
  in.confirm("Cancel delivery " + id + "? Its event will not be sent to the endpoint.");
  const Target target = below_tenant(in, "deliveries", id, "cancel");
  print_delivery_summary(in, in.server().send("POST", target, with_reason(in)));
  return done;
}

int retry(Invocation& in) {
  const Target target = below_tenant(in, "deliveries", delivery_of(in), "retry");
  print_delivery_summary(in, in.server().send("POST", target, with_reason(in)));
  return done;
}

// A replay is requested below its tenant.
int replay(Invocation& in) {
  const std::string id = delivery_of(in);
  std::optional<std::string> tenant = in.value("--tenant");
  if (!tenant)
    tenant = std::string(in.server().get(Target("v1", "deliveries", id)).at("tenant_id").as_string());
  const Target target("v1", "tenants", *tenant, "deliveries", id, "replay");
  const json::value made = in.server().send("POST", target, with_reason(in));
  print_delivery_summary(in, made);
  if (const json::value* fresh = made.as_object().if_contains("id"))
    in.out().note("See the result: postrider delivery show " + cell_text(*fresh));
  return done;
}

}  // namespace

Command delivery_commands() {
  const std::vector<Parameter> common = {tenant_option(),
                                         option("--endpoint", "ENDPOINT", "Only this endpoint"),
                                         option("--event", "EVENT", "Only this event and its replays"),
                                         option("--event-type", "TYPE", "Only events of this type")};
  const std::vector<Parameter> filters = {
      option("--subject", "SUBJECT", "Only events with this subject"),
      choice("--status", {"pending", "processing", "retrying", "delivered", "dead_letter", "canceled"},
             "Only with this status")};
  const std::vector<Parameter> attempt_filters = {
      choice("--outcome", {"delivered", "retrying", "dead_letter", "canceled"}, "Only with this outcome"),
      option("--status-code", "CODE", "Only with this HTTP status code"),
      option("--error", "ERROR", "Only with this error, such as timeout_first_byte")};
  const std::vector<Parameter> one = {argument("delivery", "Delivery ID, dlv_…"), tenant_option()};
  const std::vector<Parameter> reason = {reason_option()};
  const std::vector<Parameter> exported = {format_option()};
  return group(
      "delivery", "Inspect, retry, cancel and replay deliveries",
      {command("list", "List deliveries, newest first",
               join(common, filters, period_options(), list_parameters(), exported), list)
           .example("postrider delivery list --tenant acme --status retrying")
           .example("postrider delivery list --since 1h --watch")
           .example("postrider delivery list --tenant acme --status dead_letter --format csv"),
       command("attempts", "List attempts of all deliveries, newest first",
               join(common, attempt_filters, period_options(), list_parameters(), exported), list_attempts)
           .example("postrider delivery attempts --tenant acme --outcome retrying --since 1h"),
       command("show", "Show a delivery: each attempt, the response, and what to do next",
               join(one, std::vector{watch_flag()}), show)
           .example("postrider delivery show dlv_01980a6c7d5e7b0e9d0c2f6f8a4b3c22"),
       command("retry", "Retry a pending delivery now", join(one, reason), retry)
           .example("postrider delivery retry dlv_01980a6c7d5e7b0e9d0c2f6f8a4b3c22"),
       command("cancel", "Cancel a pending delivery", join(one, reason, std::vector{yes_flag()}), cancel)
           .example("postrider delivery cancel dlv_01980a6c7d5e7b0e9d0c2f6f8a4b3c22"),
       command("replay", "Send the event again as a new delivery",
               join(one, std::vector{required(reason_option())}), replay)
           .example("postrider delivery replay dlv_01980a6c7d5e7b0e9d0c2f6f8a4b3c22 --reason \"fixed on "
                    "their side\"")});
}

}  // namespace postrider::cli
