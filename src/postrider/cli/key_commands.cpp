// `postrider key` and `postrider audit`
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
      {Kind::text, "--role", "What the key may do", {"admin", "operator", "customer", "publisher", "reader"}},
      {Kind::text,
       "--tenant",
       "Restrict the key to this tenant; required for the role customer",
       {},
       "tenant_id",
       "TENANT"},
      {Kind::text, "--description", "Free-form description"},
      {Kind::text, "--owner", "The person or program that uses the key, for the audit log"},
      {Kind::number, "--rate-per-second", "Maximum requests per second"},
  };
  return all;
}

// "30d" from now, a date or a timestamp.
void set_expiry(const Invocation& in, json::object& body) {
  if (const auto in_time = in.duration("--expires-in"))
    body["expires_at"] = base::to_rfc3339(base::wall_now() + *in_time);
  if (const auto at = in.time("--expires-at")) body["expires_at"] = *at;
}

int create(Invocation& in) {
  json::object body;
  set_fields(in, fields(), body);
  set_expiry(in, body);
  if (in.has("--payloads")) body["payloads"] = true;
  if (in.has("--no-payloads")) body["payloads"] = false;
  in.out().record(
      in.server().send("POST", Target("v1", "keys"), body),
      {{"", {"id", "role", "tenant_id", "payloads", "description", "owner", "rate_per_second", "expires_at"}},
       {"", {"key"}},
       {"", {"created_at", "created_by"}}});
  in.out().note("Save this key now. It will not be shown again.");
  return done;
}

int list(Invocation& in) {
  Target target("v1", "keys");
  target.with("tenant", in.value("--tenant"));
  return show_list(in, target,
                   {{"ID", "/id", Style::id},
                    {"ROLE", "/role", Style::yes_no},
                    {"TENANT", "/tenant_id", Style::text, Shown::if_any},
                    {"OWNER", "/owner", Style::text, Shown::if_any},
                    {"DESCRIPTION", "/description", Style::text, Shown::if_room},
                    {"LAST USED", "/last_used_at", Style::age},
                    {"EXPIRES", "/expires_at", Style::age, Shown::if_any},
                    {"REVOKED", "/revoked_at", Style::age, Shown::if_any},
                    {"PAYLOADS", "/payloads", Style::yes_no, Shown::wide},
                    {"CREATED", "/created_at", Style::time, Shown::wide}},
                   "No keys found.");
}

int show(Invocation& in) {
  in.out().record(in.server().get(Target("v1", "keys", key_of(in))));
  return done;
}

int revoke(Invocation& in) {
  in.confirm("Revoke API key " + in.argument("key") + "? Clients that use it will be rejected.");
  const json::value response = in.server().call({"DELETE", Target("v1", "keys", key_of(in))});
  if (!in.out().is_for_people()) in.out().record(response);
  in.out().note("Revoked. All nodes reject the key within seconds.");
  return done;
}

int audit(Invocation& in) {
  Target target("v1", "audit");
  add_filters(in, target, {"tenant", "actor", "action", "object", "since", "until"});
  return show_list(in, target,
                   {{"AGE", "/at", Style::age},
                    {"ACTION", "/action", Style::yes_no},
                    {"TENANT", "/tenant_id"},
                    {"OBJECT", "/object", Style::id},
                    {"ACTOR", "/actor/id", Style::id},
                    {"NAME", "/actor/name", Style::text, Shown::if_any},
                    {"REASON", "/reason", Style::text, Shown::if_any},
                    {"AT", "/at", Style::time, Shown::wide},
                    {"ADDRESS", "/address", Style::text, Shown::wide}},
                   "No audit entries found.");
}

}  // namespace

Command key_commands() {
  const std::vector<Parameter> settings =
      join(field_parameters(fields(), {"--role"}),
           std::vector{option("--expires-in", "DURATION", "Expire after this time, such as 30d"),
                       option("--expires-at", "TIME", "Expire at this date or RFC 3339 timestamp"),
                       flag("--payloads", "The key may read event data"),
                       flag("--no-payloads", "The key may not read event data")});
  const Parameter key = argument("key", "Key ID, key_…");
  const std::vector<Parameter> tenant = {option("--tenant", "TENANT", "Only keys of this tenant")};
  return group(
      "key", "Manage API keys and the master key",
      {command("create", "Create an API key (the key is shown only once)", settings, create)
           .example("postrider key create --role publisher --tenant acme --description \"billing service\"")
           .example("postrider key create --role customer --tenant acme --owner \"Ann, Acme\"")
           .example("postrider key create --role reader --expires-in 30d"),
       command("list", "List API keys (not the keys themselves)", join(tenant, list_parameters()), list)
           .example("postrider key list"),
       command("show", "Show an API key", {key}, show)
           .example("postrider key show key_01980a6c7d5e7b0e9d0c2f6f8a4b3c21"),
       command("revoke", "Revoke an API key permanently", {key, yes_flag()}, revoke)
           .example("postrider key revoke key_01980a6c7d5e7b0e9d0c2f6f8a4b3c21"),
       rotate_master_command()});
}

Command audit_command() {
  return command("audit", "Show who changed what (before and after with --json)",
                 join({tenant_option(), option("--actor", "ID", "Only changes by this key or person"),
                       option("--action", "ACTION", "Only this action, such as endpoint.pause"),
                       option("--object", "ID", "Only changes of this object")},
                      period_options(), list_parameters()),
                 audit)
      .example("postrider audit --since 1d")
      .example("postrider audit --tenant acme --action endpoint.pause");
}

}  // namespace postrider::cli
