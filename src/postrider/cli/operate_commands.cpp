// `postrider stats`, `search`, `brakes` and `whoami`
#include "postrider/cli/delivery_view.hpp"
#include "postrider/cli/fields.hpp"
#include "postrider/cli/groups.hpp"
#include "postrider/cli/ids.hpp"
#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

namespace {

using Shown = Column::Shown;

int stats(Invocation& in) {
  Target target = below_tenant(in, "stats");
  add_filters(in, target, {"by", "since", "until", "limit"});
  target.with("endpoint", endpoint_filter(in, in.value("--tenant"))).with("type", in.value("--event-type"));
  in.out().list(in.server().get(target),
                {{"HOUR", "/hour", Style::time, Shown::if_any},
                 {"TENANT", "/tenant_id", Style::text, Shown::if_any},
                 {"ENDPOINT", "/endpoint_id", Style::id, Shown::if_any},
                 {"TYPE", "/event_type", Style::text, Shown::if_any},
                 {"DELIVERED", "/delivered", Style::yes_no},
                 {"RETRIED", "/retried", Style::yes_no},
                 {"DEAD", "/dead_lettered", Style::yes_no},
                 {"FIRST ATTEMPT", "/first_attempt_success_rate", Style::share},
                 {"LATENCY", "/latency_ms_average", Style::milliseconds}},
                "No statistics yet: they are updated about once a minute.");
  return done;
}

int search(Invocation& in) {
  in.out().list(in.server().get(Target("v1", "search").with("q", in.argument("what"))),
                {{"KIND", "/kind", Style::yes_no},
                 {"ID", "/id", Style::yes_no},
                 {"TENANT", "/tenant_id"},
                 {"ABOUT", "/about"}},
                "Nothing found. Search finds whole IDs, subjects of events and hosts of endpoints.");
  return done;
}

int show_brakes(Invocation& in) {
  in.out().record(in.server().get(Target("v1", "brakes")));
  return done;
}

const std::vector<Field>& brake_fields() {
  static const std::vector<Field> all = {
      {Field::Kind::number, "--retry-rate-per-second",
       "Maximum retries per second on all nodes together; `none` for no limit"},
      {Field::Kind::number, "--drain-rate-per-second",
       "Maximum attempts per second on all nodes together; `none` for no limit"},
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
  if (body.empty())
    throw Misuse(
        "Nothing to set: give --pause-all, --retry-rate-per-second, --drain-rate-per-second or --release.");
  if (in.has("--pause-all")) in.confirm("Pause all deliveries of all tenants?");
  in.out().record(in.server().send("PATCH", Target("v1", "brakes"), with_reason(in, body)));
  return done;
}

int whoami(Invocation& in) {
  const json::value me = in.server().get(Target("v1", "me"));
  if (!in.out().is_for_people()) {
    in.out().record(me);
    return done;
  }
  json::object shown{{"server", in.server().url()}};
  const ServerChoice& choice = in.server_choice();
  if (!choice.profile.empty()) shown["profile"] = choice.profile;
  if (!choice.key_from.empty()) shown["key_from"] = choice.key_from;
  for (const auto& member : me.as_object()) {
    const std::string_view name = member.key();
    if (name == "server" && member.value().is_object()) {
      if (const json::value* version = member.value().get_object().if_contains("version"))
        shown["server_version"] = *version;
      continue;
    }
    if (name == "tenant_id" && member.value().is_null())
      shown["tenant"] = "all tenants";
    else
      shown[name] = member.value();
  }
  in.out().record(shown, {{"", {"server", "server_version", "profile", "key_from"}},
                          {"",
                           {"kind", "key_id", "role", "access", "tenant", "tenant_id", "payloads",
                            "description", "expires_at"}}});
  return done;
}

}  // namespace

Command stats_command() {
  const std::vector<Parameter> parameters = {
      tenant_option(),
      choice("--by", {"hour", "tenant", "type", "endpoint"}, "What each row stands for (default: hour)"),
      option("--endpoint", "ENDPOINT", "Only this endpoint"),
      option("--event-type", "TYPE", "Only this event type"),
      option("--limit", "N", "Maximum number of rows")};
  return command("stats", "Show delivery statistics by hour, tenant, type or endpoint",
                 join(parameters, period_options(), std::vector{watch_flag()}), stats)
      .example("postrider stats --since 1d")
      .example("postrider stats --by endpoint --tenant acme");
}

Command search_command() {
  return command("search", "Find events, deliveries and endpoints by ID, subject or host",
                 {argument("what", "An ID, the subject of events, or the host of endpoints")}, search)
      .example("postrider search invoice-17")
      .example("postrider search hooks.example.com");
}

Command brake_commands() {
  const std::vector<Parameter> parameters = {flag("--pause-all", "Pause all deliveries of all tenants"),
                                             flag("--release", "Remove the pause and both limits"),
                                             required(reason_option()), yes_flag()};
  return group("brakes", "Emergency controls: pause all deliveries, limit retries",
               {command("show", "Show what is set and why", {watch_flag()}, show_brakes)
                    .example("postrider brakes show"),
                command("set", "Pause all deliveries or limit their rate",
                        join(parameters, field_parameters(brake_fields())), set_brakes)
                    .example("postrider brakes set --pause-all --reason \"network outage\"")
                    .example("postrider brakes set --release --reason \"network is back\"")});
}

Command whoami_command() {
  return command("whoami", "Show which server, key and role are in use", {}, whoami)
      .example("postrider whoami");
}

}  // namespace postrider::cli
