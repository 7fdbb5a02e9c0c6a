// `postrider tenant`
#include <boost/json/array.hpp>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "postrider/cli/fields.hpp"
#include "postrider/cli/groups.hpp"
#include "postrider/cli/ids.hpp"
#include "postrider/cli/invocation.hpp"
#include "postrider/cli/progress.hpp"

namespace postrider::cli {

namespace {

using Kind = Field::Kind;
using Shown = Column::Shown;

const std::vector<Field>& fields() {
  static const std::vector<Field> all = {
      {Kind::text, "--name", "Display name"},
      {Kind::integer, "--max-in-flight", "Maximum concurrent deliveries; `none` for no limit"},
      {Kind::number, "--rate-per-second", "Maximum deliveries per second; `none` for no limit"},
      {Kind::number, "--publish-rate-per-second", "Maximum published events per second; `none` for no limit"},
      {Kind::integer, "--payload-bytes-max",
       "Maximum size of an event's data; `none` for the server's limit"},
      {Kind::integer, "--endpoints-max", "Maximum number of endpoints; `none` for the server's limit"},
      {Kind::words,
       "--allow-network",
       "Private network that its URLs may reach, such as 10.1.2.0/24 (repeatable; replaces all networks; "
       "`none` "
       "for no networks)",
       {},
       "allow_networks",
       "NETWORK"},
      {Kind::words,
       "--contact",
       "E-mail address or URL to notify about failing endpoints (repeatable; replaces all contacts)",
       {},
       "contacts",
       "ADDRESS"},
      {Kind::json, "--metadata", "Any JSON object, or @FILE"},
  };
  return all;
}

const Layout& layout() {
  static const Layout all = {
      {"", {"id", "name", "status", "status_reason", "status_since", "status_by", "endpoint_count"}},
      {"Limits",
       {"max_in_flight", "rate_per_second", "publish_rate_per_second", "payload_bytes_max", "endpoints_max",
        "allow_networks"}},
      {"Contacts and metadata", {"contacts", "contact_secret", "metadata"}},
      {"History", {"created_at", "updated_at"}},
  };
  return all;
}

Target one(const Invocation& in) {
  return Target("v1", "tenants", tenant_of(in));
}

std::string contact_text(const json::object& contact) {
  std::string text = cell_text(contact.at("address"));
  const auto has = [&](const char* field) { return contact.contains(field) && !contact.at(field).is_null(); };
  if (has("unsubscribed_at")) return text + " (unsubscribed)";
  return text + (has("confirmed_at") ? "" : " (not confirmed)");
}

void print(Invocation& in, json::value tenant) {
  json::object& object = tenant.as_object();
  if (in.out().is_for_people() && object.contains("contacts") && object["contacts"].is_array()) {
    json::array contacts;
    for (const json::value& contact : object["contacts"].as_array())
      contacts.emplace_back(contact_text(contact.as_object()));
    object["contacts"] = std::move(contacts);
  }
  in.out().record(tenant, layout());
  if (object.contains("contact_secret"))
    in.out().note("The contact secret signs notices to URLs. It is shown only now.");
}

int list(Invocation& in) {
  return show_list(in, Target("v1", "tenants"),
                   {{"ID", "/id"},
                    {"NAME", "/name", Style::text, Shown::if_any},
                    {"STATUS", "/status", Style::yes_no},
                    {"ENDPOINTS", "/endpoint_count", Style::yes_no},
                    {"AGE", "/created_at", Style::age},
                    {"REASON", "/status_reason", Style::text, Shown::wide},
                    {"CREATED", "/created_at", Style::time, Shown::wide}},
                   "No tenants found. Create one with `postrider tenant create TENANT`.");
}

int create(Invocation& in) {
  json::object body = read_document(in, fields());
  body["id"] = tenant_of(in);
  print(in, in.server().send("POST", Target("v1", "tenants"), body));
  in.out().note("Created. Next: postrider endpoint create " + tenant_of(in) + " --url URL --event-type '*'");
  return done;
}

int show(Invocation& in) {
  print(in, in.server().get(one(in)));
  return done;
}

int update(Invocation& in) {
  print(in, in.server().send("PATCH", one(in), read_document(in, fields())));
  return done;
}

int remove(Invocation& in) {
  in.confirm("Delete tenant " + tenant_of(in) + " with its endpoints, and cancel its pending deliveries?");
  in.server().call({"DELETE", one(in)});
  in.out().note("Deleted tenant " + visible(tenant_of(in)) +
                ". Pending deliveries are canceled; the history is kept.");
  return done;
}

// Writes the lines as they come, and counts them. An export that was cut off must not look complete.
int export_all(Invocation& in) {
  RemoteCall call{"GET", Target("v1", "tenants", tenant_of(in), "export")};
  call.timeout = std::chrono::hours(24);
  call.silence_max = std::chrono::minutes(2);
  const auto path = in.value("--to");
  std::FILE* file = path ? std::fopen(path->c_str(), "wb") : stdout;
  if (file == nullptr) throw Misuse("Cannot write to " + *path + ": " + std::strerror(errno) + ".");
  Progress bar("lines");
  uint64_t lines = 0;
  bool is_written = true;
  std::string last;  // the line being read, or the last one
  const bool is_whole = in.server().stream(call, [&](std::string_view data) {
    is_written = is_written && std::fwrite(data.data(), 1, data.size(), file) == data.size();
    for (const char c : data) {
      if (!last.empty() && last.back() == '\n') last.clear();
      if (last.size() < 64 || c == '\n') last += c;
      if (c == '\n') ++lines;
    }
    bar.update(lines);
  });
  is_written = (file == stdout ? std::fflush(file) : std::fclose(file)) == 0 && is_written;
  bar.finish();
  if (!is_written) throw std::runtime_error("The export could not be written: is the disk full?");
  if (!is_whole || !last.starts_with(R"({"kind":"end")") || !last.ends_with('\n'))
    throw ServerUnreachable("The export was interrupted; the output is incomplete.");
  in.out().note("Exported " + std::to_string(lines - 1) + " records of tenant " + visible(tenant_of(in)) +
                ".");
  return done;
}

std::function<int(Invocation&)> set_status(const char* verb) {
  return [verb](Invocation& in) {
    print(in, in.server().send("POST", Target("v1", "tenants", tenant_of(in), verb), with_reason(in)));
    return done;
  };
}

std::function<int(Invocation&)> contact_call(const char* verb) {
  return [verb](Invocation& in) {
    const json::object body{{"address", in.argument("address")}};
    const Target target("v1", "tenants", tenant_of(in), "contacts", verb);
    in.out().record(in.server().send("POST", target, body));
    return done;
  };
}

Command contact_commands(const Parameter& tenant) {
  const Parameter address = argument("address", "E-mail address among the tenant's contacts");
  return group("contact", "Confirm e-mail contacts",
               {command("confirm", "Confirm an address on the customer's behalf (operators only)",
                        {tenant, address}, contact_call("confirm"))
                    .example("postrider tenant contact confirm acme billing@acme.example"),
                command("request", "Send the confirmation e-mail again", {tenant, address},
                        contact_call("request-confirmation"))
                    .example("postrider tenant contact request acme billing@acme.example")});
}

}  // namespace

Command tenant_commands() {
  const Parameter tenant = argument("tenant", "Tenant ID");
  const std::vector<Parameter> settings = join(field_parameters(fields()), std::vector{json_file_option()});
  return group(
      "tenant", "Manage tenants and their limits",
      {command("list", "List tenants", list_parameters(), list).example("postrider tenant list"),
       command("create", "Create a tenant", join({with_field(tenant, "id")}, settings), create)
           .example("postrider tenant create acme")
           .example("postrider tenant create acme --name \"Acme Corp.\" --contact ops@acme.example"),
       command("show", "Show a tenant", {tenant, watch_flag()}, show).example("postrider tenant show acme"),
       command("update", "Update the given fields", join({tenant}, settings), update)
           .example("postrider tenant update acme --rate-per-second 50")
           .example("postrider tenant update acme --rate-per-second none"),
       command("delete", "Delete a tenant and its endpoints", {tenant, yes_flag()}, remove)
           .example("postrider tenant delete acme"),
       command("pause", "Pause a tenant's deliveries; events are queued", {tenant, reason_option()},
               set_status("pause"))
           .example("postrider tenant pause acme --reason \"unpaid invoice\""),
       command("resume", "Resume a tenant's deliveries", {tenant, reason_option()}, set_status("resume"))
           .example("postrider tenant resume acme"),
       command("export", "Export everything about a tenant (NDJSON)",
               {tenant, option("--to", "FILE", "Write to this file instead of standard output")}, export_all)
           .example("postrider tenant export acme --to acme.ndjson"),
       contact_commands(tenant)});
}

}  // namespace postrider::cli
