// `postrider key` and `postrider audit`
#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

namespace {

using Kind = Field::Kind;

const std::vector<Field>& fields() {
  static const std::vector<Field> all = {
      {Kind::text, "--role", "What it may do", {"admin", "operator", "publisher", "reader"}},
      {Kind::text, "--tenant", "Bind it to one tenant", {}, "tenant_id"},
      {Kind::text, "--description", "For people"},
      {Kind::number, "--rate-per-second", "Calls per second"},
      {Kind::text, "--expires-at", "When it ends, RFC 3339"},
  };
  return all;
}

int create(Invocation& in) {
  json::object body;
  set_fields(in, fields(), body);
  if (!body.contains("role")) throw Misuse("--role is missing.");
  if (in.has("--payloads")) body["payloads"] = true;
  if (in.has("--no-payloads")) body["payloads"] = false;
  in.out().record(in.server().send("POST", Target("v1", "keys"), body));
  in.out().note("The key is shown only now.");
  return done;
}

int list(Invocation& in) {
  Target target("v1", "keys");
  target.with("tenant", in.value("--tenant"));
  return show_list(in, target,
                   {{"ID", "/id"},
                    {"ROLE", "/role"},
                    {"TENANT", "/tenant_id"},
                    {"PAYLOADS", "/payloads"},
                    {"DESCRIPTION", "/description"},
                    {"LAST USED", "/last_used_at"},
                    {"EXPIRES", "/expires_at"},
                    {"REVOKED", "/revoked_at"}});
}

int show(Invocation& in) {
  in.out().record(in.server().get(Target("v1", "keys", in.argument("key"))));
  return done;
}

int revoke(Invocation& in) {
  in.out().record(in.server().call({"DELETE", Target("v1", "keys", in.argument("key"))}));
  in.out().note("Revoked: within seconds no node takes it.");
  return done;
}

int audit(Invocation& in) {
  Target target("v1", "audit");
  for (const char* name : {"tenant", "actor", "action", "object", "since", "until"})
    target.with(name, in.value("--" + std::string(name)));
  return show_list(in, target,
                   {{"AT", "/at"},
                    {"WHO", "/actor/id"},
                    {"ACTION", "/action"},
                    {"TENANT", "/tenant_id"},
                    {"OBJECT", "/object"},
                    {"REASON", "/reason"},
                    {"FROM", "/address"}});
}

std::vector<Parameter> with_paging(std::vector<Parameter> filters) {
  for (Parameter& parameter : list_parameters()) filters.push_back(std::move(parameter));
  return filters;
}

}  // namespace

Command key_commands() {
  std::vector<Parameter> settings = field_parameters(fields());
  settings.push_back(flag("--payloads", "It may see the bodies of events"));
  settings.push_back(flag("--no-payloads", "It may not"));
  const Parameter key = argument("key", "The key's id, key_…");
  const Parameter tenant = option("--tenant", "TENANT", "Only those bound to it");
  return group("key", "API keys and the master key",
               {command("create", "Make an API key; it is shown once", settings, create),
                command("list", "API keys, without the keys themselves", with_paging({tenant}), list),
                command("show", "One API key", {key}, show),
                command("revoke", "End an API key for good", {key}, revoke), rotate_master_command()});
}

Command audit_command() {
  return command("audit", "Who did what, and from where; before and after with --json",
                 with_paging({option("--tenant", "TENANT", "Only this tenant"),
                              option("--actor", "ID", "Only what this key or person did"),
                              option("--action", "ACTION", "Only this, as endpoint.pause"),
                              option("--object", "ID", "Only what was done to this"),
                              option("--since", "TIME", "From this time on, RFC 3339"),
                              option("--until", "TIME", "Before this time")}),
                 audit);
}

}  // namespace postrider::cli
