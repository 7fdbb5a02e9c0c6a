// `postrider outbox`
#include <charconv>
#include <cstdio>

#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"
#include "postrider/outbox/install.hpp"
#include "postrider/runtime/run_blocking.hpp"

namespace postrider::cli {

namespace {

constexpr const char* kNoRight = "42501";

int install(Invocation& in) {
  const auto url = in.value("--database-url");
  if (!url) throw Misuse("--database-url says where the outbox is to be.");
  runtime::Loop loop;
  outbox::MissingRoles missing;
  try {
    missing = runtime::run_blocking(loop, outbox::install(loop, *url));
  } catch (const pg::Error& error) {
    if (error.sqlstate() != kNoRight) throw;
    throw pg::Error(error.kind(), std::string(error.what()) +
                                      ": install it as a role that may create a schema in that database, "
                                      "such as its owner");
  }
  std::puts(
      "The outbox is installed. Applications call postrider.publish(…); grant them postrider_publisher.\n"
      "The role that relays needs postrider_relay.");
  if (!missing.names.empty())
    std::puts(("This role is not allowed to create roles, so " + missing.listed() +
               " must be created by an administrator, in this database:\n  " + missing.statements)
                  .c_str());
  return done;
}

int status(Invocation& in) {
  if (const auto one = in.value("outbox")) {
    in.out().record(in.server().get(Target("v1", "outboxes", *one)));
    return done;
  }
  in.out().list(
      in.server().get(Target("v1", "outboxes")),
      {{"ID", "/id"}, {"DATABASE", "/database_url"}, {"BY", "/configured_by"}, {"CREATED", "/created_at"}});
  return done;
}

int add(Invocation& in) {
  const auto url = in.value("--database-url");
  if (!url) throw Misuse("--database-url says where the outbox is.");
  json::object body;
  body["database_url"] = *url;
  in.out().record(in.server().send("PUT", Target("v1", "outboxes", in.argument("outbox")), body));
  return done;
}

int remove(Invocation& in) {
  in.server().call({"DELETE", Target("v1", "outboxes", in.argument("outbox"))});
  in.out().note("It is relayed no longer. Its table and rows stay as they are.");
  return done;
}

int stuck(Invocation& in) {
  return show_list(in, Target("v1", "outboxes", in.value("outbox").value_or("local"), "stuck"),
                   {{"ROW", "/id"},
                    {"EVENT", "/event_id"},
                    {"TENANT", "/tenant_id"},
                    {"TYPE", "/type"},
                    {"ATTEMPTS", "/attempts"},
                    {"ERROR", "/last_error"},
                    {"SINCE", "/set_aside_at"}});
}

int64_t row_number(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw Misuse("--row must be the number of a row, as `postrider outbox stuck` lists it.");
  return number;
}

int release(Invocation& in) {
  json::object body;
  json::array ids;
  for (const std::string& row : in.values("--row")) ids.push_back(row_number(row));
  if (!ids.empty()) body["ids"] = ids;
  const Target target("v1", "outboxes", in.value("outbox").value_or("local"), "stuck", "release");
  in.out().record(in.server().send("POST", target, body));
  return done;
}

}  // namespace

Command outbox_commands() {
  const Parameter url = option("--database-url", "URL", "The application's database");
  const Parameter one = argument("outbox", "Its id");
  const Parameter which =
      optional_argument("outbox", "Its id; `local` is the one in postrider's own database");
  std::vector<Parameter> listed = {which};
  for (Parameter& parameter : list_parameters()) listed.push_back(std::move(parameter));
  return group("outbox", "Outboxes of applications",
               {command("install", "Put table, functions and roles into an application's database", {url},
                        install, Needs::nothing),
                command("status", "All outboxes, or how one stands", {which}, status),
                command("add", "Relay an outbox in another database", {one, url}, add),
                command("remove", "Relay it no longer", {one}, remove), capture_command(),
                command("stuck", "Rows that were set aside, and why", std::move(listed), stuck),
                command("release", "Try rows again that were set aside",
                        {which, list_option("--row", "ID", "Only this row; may be repeated")}, release),
                outbox_discard_command(), refanout_command()});
}

}  // namespace postrider::cli
