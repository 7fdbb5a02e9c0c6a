// `postrider outbox`
#include <charconv>
#include <cstdio>

#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"
#include "postrider/outbox/install.hpp"
#include "postrider/runtime/run_blocking.hpp"

namespace postrider::cli {

namespace {

using Shown = Column::Shown;

constexpr const char* kNoRight = "42501";

int install(Invocation& in) {
  const auto url = in.value("--database-url");
  if (!url) throw Misuse("--database-url is required: the application's database.");
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
  in.out().list(in.server().get(Target("v1", "outboxes")),
                {{"ID", "/id"},
                 {"DATABASE", "/database_url", Style::text, Shown::if_any},
                 {"WAITING", "/waiting", Style::yes_no, Shown::if_any},
                 {"FAILING", "/failing", Style::yes_no, Shown::if_any},
                 {"STUCK", "/stuck", Style::yes_no, Shown::if_any},
                 {"CONFIGURED BY", "/configured_by", Style::text, Shown::if_any},
                 {"AGE", "/created_at", Style::age, Shown::if_any}});
  return done;
}

int set(Invocation& in) {
  const auto on_invalid = in.value("--on-invalid");
  if (!on_invalid) throw Misuse("--on-invalid is required: 'refuse' or 'set_aside'.");
  json::object body;
  body["on_invalid"] = *on_invalid;
  in.out().record(in.server().send("PATCH", Target("v1", "outboxes", in.argument("outbox")), body));
  return done;
}

int add(Invocation& in) {
  const auto url = in.value("--database-url");
  if (!url) throw Misuse("--database-url is required: the application's database.");
  json::object body;
  body["database_url"] = *url;
  in.out().record(in.server().send("PUT", Target("v1", "outboxes", in.argument("outbox")), body));
  return done;
}

int remove(Invocation& in) {
  in.confirm("Stop relaying outbox " + in.argument("outbox") + "?");
  in.server().call({"DELETE", Target("v1", "outboxes", in.argument("outbox"))});
  in.out().note("The outbox is no longer relayed. Its table and rows are unchanged.");
  return done;
}

int stuck(Invocation& in) {
  return show_list(in, Target("v1", "outboxes", in.value("outbox").value_or("local"), "stuck"),
                   {{"ROW", "/id", Style::yes_no},
                    {"EVENT", "/event_id", Style::id},
                    {"TENANT", "/tenant_id"},
                    {"TYPE", "/type"},
                    {"ATTEMPTS", "/attempts", Style::yes_no},
                    {"ERROR", "/last_error"},
                    {"AGE", "/set_aside_at", Style::age}},
                   "No rows are set aside.");
}

int64_t row_id(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw Misuse("Invalid value \"" + text +
                 "\" for --row: expected a row ID from `postrider outbox stuck`.");
  return number;
}

int release(Invocation& in) {
  json::object body;
  json::array ids;
  for (const std::string& row : in.values("--row")) ids.push_back(row_id(row));
  if (!ids.empty()) body["ids"] = ids;
  const Target target("v1", "outboxes", in.value("outbox").value_or("local"), "stuck", "release");
  in.out().record(in.server().send("POST", target, body));
  return done;
}

}  // namespace

Command outbox_commands() {
  const Parameter url = required(option("--database-url", "URL", "Database of the application"));
  const Parameter one = argument("outbox", "Outbox ID");
  const Parameter which =
      optional_argument("outbox", "Outbox ID (default: local, in postrider's own database)");
  return group(
      "outbox", "Manage the outboxes of applications",
      {command("install", "Install the outbox table, functions and roles in an application's database", {url},
               install, Needs::nothing)
           .example("postrider outbox install --database-url postgresql://owner@db/billing"),
       command("status", "List outboxes, or show one", {which, watch_flag()}, status)
           .example("postrider outbox status")
           .example("postrider outbox status local"),
       command("add", "Relay an outbox in another database", {one, url}, add)
           .example("postrider outbox add billing --database-url postgresql://relay@db/billing"),
       command("remove", "Stop relaying an outbox", {one, yes_flag()}, remove)
           .example("postrider outbox remove billing"),
       command("set", "Change a setting of an outbox",
               {one, required(choice("--on-invalid", {"refuse", "set_aside"},
                                     "'refuse': an invalid event fails the transaction that publishes it; "
                                     "'set_aside': it is stored as a stuck row"))},
               set)
           .example("postrider outbox set local --on-invalid set_aside"),
       capture_command(),
       command("stuck", "List rows that were set aside, and why", join({which}, list_parameters()), stuck)
           .example("postrider outbox stuck"),
       command("release", "Retry rows that were set aside",
               {which, list_option("--row", "ID", "Only this row (repeatable)")}, release)
           .example("postrider outbox release local --row 17"),
       outbox_discard_command(), refanout_command()});
}

}  // namespace postrider::cli
