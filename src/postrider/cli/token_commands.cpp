// `postrider token`
#include "postrider/cli/groups.hpp"
#include "postrider/cli/ids.hpp"
#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

namespace {

using Shown = Column::Shown;

constexpr auto kLifetime = std::chrono::hours(1);

int create(Invocation& in) {
  const auto lifetime = in.duration("--expires-in").value_or(kLifetime);
  json::object body{
      {"expires_in_seconds", std::chrono::duration_cast<std::chrono::seconds>(lifetime).count()}};
  if (const auto access = in.value("--access")) body["access"] = *access;
  if (const auto label = in.value("--label")) body["label"] = *label;
  if (in.has("--no-payloads")) body["payloads"] = false;
  in.out().record(in.server().send("POST", Target("v1", "tenants", tenant_of(in), "tokens"), body),
                  {{"", {"id", "tenant_id", "access", "payloads", "label", "expires_at"}},
                   {"", {"token"}},
                   {"", {"created_at", "created_by"}}});
  in.out().note("Save this token now. It will not be shown again.");
  return done;
}

int list(Invocation& in) {
  return show_list(in, Target("v1", "tenants", tenant_of(in), "tokens"),
                   {{"ID", "/id", Style::id},
                    {"ACCESS", "/access", Style::yes_no},
                    {"LABEL", "/label", Style::text, Shown::if_any},
                    {"EXPIRES", "/expires_at", Style::time},
                    {"LAST USED", "/last_used_at", Style::age},
                    {"PAYLOADS", "/payloads", Style::yes_no, Shown::wide},
                    {"CREATED", "/created_at", Style::time, Shown::wide}},
                   "No tokens found.");
}

int show(Invocation& in) {
  in.out().record(in.server().get(Target("v1", "tenants", tenant_of(in), "tokens", token_of(in))));
  return done;
}

int revoke(Invocation& in) {
  in.confirm("Revoke token " + in.argument("token") + "? Its user will be rejected.");
  const json::value response =
      in.server().call({"DELETE", Target("v1", "tenants", tenant_of(in), "tokens", token_of(in))});
  if (!in.out().is_for_people()) in.out().record(response);
  in.out().note("Revoked. All nodes reject the token within seconds.");
  return done;
}

}  // namespace

Command token_commands() {
  const Parameter tenant = argument("tenant", "Tenant ID");
  const Parameter token = argument("token", "Token ID, key_…");
  Parameter lifetime = option("--expires-in", "DURATION", "Expire after 1m to 7d (default: 1h)");
  lifetime.field = "expires_in_seconds";
  return group(
      "token", "Manage short-lived tokens with a customer's rights",
      {command("create", "Create a token (it is shown only once)",
               {tenant, lifetime,
                choice("--access", {"manage", "read"}, "read: the token can only read (default: manage)"),
                option("--label", "TEXT", "The person that it is for, for the audit log"),
                flag("--no-payloads", "The token may not read event data")},
               create)
           .example("postrider token create acme --expires-in 8h --label ann@acme.example")
           .example("postrider token create acme --access read --no-payloads"),
       command("list", "List tokens (not the tokens themselves)", join({tenant}, list_parameters()), list)
           .example("postrider token list acme"),
       command("show", "Show a token", {tenant, token}, show)
           .example("postrider token show acme key_01980a6c7d5e7b0e9d0c2f6f8a4b3c21"),
       command("revoke", "Revoke a token", {tenant, token, yes_flag()}, revoke)
           .example("postrider token revoke acme key_01980a6c7d5e7b0e9d0c2f6f8a4b3c21")});
}

}  // namespace postrider::cli
