// `postrider delivery`, `dead-letter`, `stats`, `search` and `brakes`
#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

namespace {

// Of one tenant with --tenant, else over all of them.
template <class... Segments>
Target below(const Invocation& in, const Segments&... segments) {
  if (const auto tenant = in.value("--tenant")) return Target("v1", "tenants", *tenant, segments...);
  return Target("v1", segments...);
}

json::object with_reason(const Invocation& in) {
  json::object body;
  if (const auto reason = in.value("--reason")) body["reason"] = *reason;
  return body;
}

int list_deliveries(Invocation& in) {
  Target target = below(in, "deliveries");
  for (const char* filter : {"endpoint", "event", "type", "subject", "status", "since", "until"})
    target.with(filter, in.value(std::string("--") + filter));
  return show_list(in, target,
                   {{"ID", "/id"},
                    {"STATUS", "/status"},
                    {"TYPE", "/event_type"},
                    {"ENDPOINT", "/endpoint_id"},
                    {"EVENT", "/event_id"},
                    {"TRIES", "/attempts"},
                    {"LAST", "/last_status_code"},
                    {"ERROR", "/last_error"},
                    {"CREATED", "/created_at"},
                    {"NEXT", "/next_attempt_at"}});
}

int show_delivery(Invocation& in) {
  const json::value delivery = in.server().get(below(in, "deliveries", in.argument("delivery")));
  if (in.as_json()) {
    in.out().json(delivery);
    return done;
  }
  json::object head = delivery.as_object();
  const json::value timeline = head["timeline"];
  head.erase("timeline");
  in.out().record(head);
  in.out().line("\nAttempts");
  in.out().list(timeline, {{"#", "/attempt"},
                           {"AT", "/started_at"},
                           {"OUTCOME", "/outcome"},
                           {"STATUS", "/status_code"},
                           {"ERROR", "/error_detail"},
                           {"µS", "/phases/total_us"},
                           {"NODE", "/node"},
                           {"NEXT", "/next_attempt_at"}});
  return done;
}

int list_attempts(Invocation& in) {
  Target target = below(in, "attempts");
  for (const char* filter : {"endpoint", "event", "type", "outcome", "error", "since", "until"})
    target.with(filter, in.value(std::string("--") + filter));
  target.with("status_code", in.value("--status-code"));
  return show_list(in, target,
                   {{"DELIVERY", "/delivery_id"},
                    {"#", "/attempt"},
                    {"AT", "/started_at"},
                    {"OUTCOME", "/outcome"},
                    {"STATUS", "/status_code"},
                    {"ERROR", "/error_detail"},
                    {"TYPE", "/event_type"},
                    {"ENDPOINT", "/endpoint_id"},
                    {"µS", "/phases/total_us"},
                    {"NODE", "/node"}});
}

int act(Invocation& in, const char* what) {
  in.out().record(
      in.server().send("POST", below(in, "deliveries", in.argument("delivery"), what), with_reason(in)));
  return done;
}

// A replay is asked for below its tenant.
int replay(Invocation& in) {
  std::optional<std::string> tenant = in.value("--tenant");
  if (!tenant) {
    const json::value shown = in.server().get(Target("v1", "deliveries", in.argument("delivery")));
    tenant = std::string(shown.at("tenant_id").as_string());
  }
  const Target target("v1", "tenants", *tenant, "deliveries", in.argument("delivery"), "replay");
  in.out().record(in.server().send("POST", target, with_reason(in)));
  return done;
}

int list_dead(Invocation& in) {
  Target target = below(in, "dead-letters");
  for (const char* filter : {"endpoint", "cause", "since", "until"})
    target.with(filter, in.value(std::string("--") + filter));
  if (in.has("--unresolved")) target.with("resolved", "false");
  return show_list(in, target,
                   {{"ID", "/id"},
                    {"CAUSE", "/cause"},
                    {"TYPE", "/event_type"},
                    {"ENDPOINT", "/endpoint_id"},
                    {"TRIES", "/attempts"},
                    {"LAST", "/last_status_code"},
                    {"ERROR", "/last_error_detail"},
                    {"DEAD", "/dead_at"},
                    {"RESOLVED", "/resolution"}});
}

int summary(Invocation& in) {
  in.out().list(in.server().get(below(in, "dead-letters", "summary")), {{"UNRESOLVED", "/unresolved"},
                                                                        {"CAUSE", "/cause"},
                                                                        {"TENANT", "/tenant_id"},
                                                                        {"ENDPOINT", "/endpoint_id"},
                                                                        {"URL", "/url"}});
  return done;
}

int resolve(Invocation& in, const char* what) {
  json::object body = with_reason(in);
  json::array ids;
  for (const std::string& id : in.values("ids")) ids.emplace_back(id);
  if (!ids.empty()) body["ids"] = std::move(ids);
  for (const char* filter : {"endpoint", "cause", "since", "until"})
    if (const auto value = in.value(std::string("--") + filter)) body[filter] = *value;
  if (in.has("--all")) body["all"] = true;
  in.out().record(in.server().send("POST", below(in, "dead-letters", what), body));
  return done;
}

int stats(Invocation& in) {
  Target target = below(in, "stats");
  for (const char* filter : {"by", "endpoint", "type", "since", "until", "limit"})
    target.with(filter, in.value(std::string("--") + filter));
  in.out().list(in.server().get(target), {{"HOUR", "/hour"},
                                          {"TENANT", "/tenant_id"},
                                          {"ENDPOINT", "/endpoint_id"},
                                          {"TYPE", "/event_type"},
                                          {"DELIVERED", "/delivered"},
                                          {"RETRIED", "/retried"},
                                          {"DEAD", "/dead_lettered"},
                                          {"FIRST TRY", "/first_attempt_success_rate"},
                                          {"MS", "/latency_ms_average"}});
  return done;
}

int search(Invocation& in) {
  in.out().list(in.server().get(Target("v1", "search").with("q", in.argument("what"))),
                {{"KIND", "/kind"}, {"ID", "/id"}, {"TENANT", "/tenant_id"}, {"ABOUT", "/about"}});
  return done;
}

int show_brakes(Invocation& in) {
  in.out().record(in.server().get(Target("v1", "brakes")));
  return done;
}

const std::vector<Field>& brake_fields() {
  static const std::vector<Field> all = {
      {Field::Kind::number, "--retry-rate-per-second", "Retries of all nodes together; none: no cap"},
      {Field::Kind::number, "--drain-rate-per-second", "All attempts of all nodes together; none: no cap"},
  };
  return all;
}

int set_brakes(Invocation& in) {
  json::object body;
  set_fields(in, brake_fields(), body);
  if (in.has("--pause-all")) body["pause_all"] = true;
  if (in.has("--release")) {
    body["pause_all"] = false;
    body["retry_rate_per_second"] = nullptr;
    body["drain_rate_per_second"] = nullptr;
  }
  body["reason"] = in.value("--reason").value_or("");
  if (body["reason"].as_string().empty()) throw Misuse("--reason is needed: it is kept in the audit log");
  in.out().record(in.server().send("PATCH", Target("v1", "brakes"), body));
  return done;
}

Parameter tenant_option() {
  return option("--tenant", "TENANT", "Only this tenant; otherwise all");
}

std::vector<Parameter> period() {
  return {option("--since", "TIME", "From this time on, RFC 3339"),
          option("--until", "TIME", "Before this time")};
}

std::vector<Parameter> format() {
  return {option("--format", "FORMAT", "The whole filtered list as ndjson or csv, as it comes")};
}

template <class... More>
std::vector<Parameter> join(std::vector<Parameter> first, const More&... more) {
  (first.insert(first.end(), more.begin(), more.end()), ...);
  return first;
}

}  // namespace

Command delivery_commands() {
  const std::vector<Parameter> filters = {
      tenant_option(),
      option("--endpoint", "ENDPOINT", "Only this endpoint"),
      option("--event", "EVENT", "Only this event and its replays"),
      option("--type", "TYPE", "Only events of this type"),
      option("--subject", "SUBJECT", "Only events about this"),
      choice("--status", {"pending", "processing", "retrying", "delivered", "dead_letter", "canceled"},
             "Only in this state")};
  const std::vector<Parameter> tried = {
      tenant_option(),
      option("--endpoint", "ENDPOINT", "Only of this endpoint"),
      option("--event", "EVENT", "Only of this event and its replays"),
      option("--type", "TYPE", "Only of events of this type"),
      choice("--outcome", {"delivered", "retrying", "dead_letter", "canceled"}, "Only those that ended so"),
      option("--status-code", "CODE", "Only those that were answered so"),
      option("--error", "WORD", "Only those with this error, such as timeout_first_byte")};
  const std::vector<Parameter> one = {argument("delivery", "Its id, dlv_…"), tenant_option()};
  const std::vector<Parameter> reason = {option("--reason", "TEXT", "Why; kept in the audit log")};
  return group("delivery", "What became of events, endpoint by endpoint",
               {command("list", "Deliveries, newest first",
                        join(filters, period(), list_parameters(), format()), list_deliveries),
                command("attempts", "What was tried, over all deliveries",
                        join(tried, period(), list_parameters(), format()), list_attempts),
                command("show", "One delivery with everything that was tried", one, show_delivery),
                command("retry", "Send a pending one now", join(one, reason),
                        [](Invocation& in) { return act(in, "retry"); }),
                command("cancel", "Cancel a pending one", join(one, reason),
                        [](Invocation& in) { return act(in, "cancel"); }),
                command("replay", "Make a new delivery of the same event", join(one, reason), replay)});
}

Command dead_letter_commands() {
  const std::vector<Parameter> filters = {
      tenant_option(), option("--endpoint", "ENDPOINT", "Only of this endpoint"),
      choice("--cause", {"rejected", "gone", "exhausted", "expired", "blocked", "endpoint_disabled"},
             "Only with this cause")};
  const std::vector<Parameter> unresolved = {flag("--unresolved", "Only those that nobody has seen to")};
  const std::vector<Parameter> which = {rest("ids", "Ids of deliveries; or a filter"),
                                        flag("--all", "Everything unresolved"),
                                        option("--reason", "TEXT", "Why; kept in the audit log")};
  return group("dead-letter", "Deliveries that automatic sending gave up on",
               {command("list", "Dead letters, newest first",
                        join(filters, period(), unresolved, list_parameters(), format()), list_dead),
                command("summary", "How many, by endpoint and cause", {tenant_option()}, summary),
                command("replay", "Send them again", join(which, filters, period()),
                        [](Invocation& in) { return resolve(in, "replay"); }),
                command("discard", "Give them up for good", join(which, filters, period()),
                        [](Invocation& in) { return resolve(in, "discard"); })});
}

Command stats_command() {
  const std::vector<Parameter> parameters = {
      tenant_option(), choice("--by", {"hour", "tenant", "type", "endpoint"}, "What a row is about"),
      option("--endpoint", "ENDPOINT", "Only this endpoint"),
      option("--type", "TYPE", "Only this event type"), option("--limit", "N", "Rows at most")};
  return command("stats", "How deliveries went, by the hour", join(parameters, period()), stats);
}

Command search_command() {
  return command("search", "Anything by any id, subject or host",
                 {argument("what", "An id, the subject of events, the host of endpoints")}, search);
}

Command brake_commands() {
  std::vector<Parameter> parameters = {flag("--pause-all", "Send nothing"),
                                       flag("--release", "No pause and no caps"),
                                       option("--reason", "TEXT", "Why; kept in the audit log")};
  return group("brakes", "What to do first in an incident",
               {command("show", "What is set, by whom and why", {}, show_brakes),
                command("set", "Pause everything, cap retries, drain slowly",
                        join(parameters, field_parameters(brake_fields())), set_brakes)});
}

}  // namespace postrider::cli
