// `postrider tenant`
#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

namespace {

using Kind = Field::Kind;

const std::vector<Field>& fields() {
  static const std::vector<Field> all = {
      {Kind::text, "--name", "Its name, for people"},
      {Kind::integer, "--max-in-flight", "Deliveries under way at once; `none`: no limit"},
      {Kind::number, "--rate-per-second", "Deliveries per second; `none`: no limit"},
      {Kind::number, "--publish-rate-per-second", "Events per second that it may publish; `none`: no limit"},
      {Kind::integer, "--payload-bytes-max", "Size of an event's data; `none`: the server's"},
      {Kind::integer, "--endpoints-max", "Endpoints at most; `none`: the server's"},
      {Kind::words,
       "--contact",
       "E-mail address or URL that hears of failing endpoints; may be repeated",
       {},
       "contacts"},
      {Kind::json, "--metadata", "Any JSON object, or @FILE"},
  };
  return all;
}

std::vector<Parameter> with_fields(std::vector<Parameter> first) {
  for (Parameter& parameter : field_parameters(fields())) first.push_back(std::move(parameter));
  first.push_back(option("--file", "FILE", "The fields as a JSON document; - reads standard input"));
  return first;
}

Target one(const Invocation& in) {
  return Target("v1", "tenants", in.argument("tenant"));
}

int list(Invocation& in) {
  return show_list(in, Target("v1", "tenants"),
                   {{"ID", "/id"},
                    {"NAME", "/name"},
                    {"STATUS", "/status"},
                    {"ENDPOINTS", "/endpoint_count"},
                    {"CREATED", "/created_at"}});
}

int create(Invocation& in) {
  json::object body = read_document(in, fields());
  body["id"] = in.argument("tenant");
  in.out().record(in.server().send("POST", Target("v1", "tenants"), body));
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
  in.server().call({"DELETE", one(in)});
  in.out().note("Deleted. Pending deliveries are canceled; history stays.");
  return done;
}

std::function<int(Invocation&)> set_status(const char* verb) {
  return [verb](Invocation& in) {
    json::object body;
    if (const auto reason = in.value("--reason")) body["reason"] = *reason;
    in.out().record(in.server().send("POST", Target("v1", "tenants", in.argument("tenant"), verb), body));
    return done;
  };
}

std::function<int(Invocation&)> contact_call(const char* verb) {
  return [verb](Invocation& in) {
    const json::object body{{"address", in.argument("address")}};
    const Target target("v1", "tenants", in.argument("tenant"), "contacts", verb);
    in.out().record(in.server().send("POST", target, body));
    return done;
  };
}

Command contact_commands(const Parameter& tenant) {
  const Parameter address = argument("address", "An e-mail address on the tenant's list of contacts");
  return group("contact", "Confirm e-mail contacts",
               {command("confirm", "Vouch for an address, so that it gets notices; operators only",
                        {tenant, address}, contact_call("confirm")),
                command("request", "Send the mail that asks the address to confirm again", {tenant, address},
                        contact_call("request-confirmation"))});
}

}  // namespace

Command tenant_commands() {
  const Parameter tenant = argument("tenant", "The tenant's id");
  const Parameter reason = option("--reason", "TEXT", "Why; shown with the status and in the audit log");
  return group(
      "tenant", "Tenants and their limits",
      {command("list", "All tenants", list_parameters(), list),
       command("create", "Make a tenant", with_fields({tenant}), create),
       command("show", "One tenant", {tenant}, show),
       command("update", "Change what is given, leave the rest", with_fields({tenant}), update),
       command("delete", "Delete a tenant and its endpoints", {tenant}, remove),
       command("pause", "Send nothing; events queue", {tenant, reason}, set_status("pause")),
       command("resume", "Send again", {tenant, reason}, set_status("resume")), contact_commands(tenant)});
}

}  // namespace postrider::cli
