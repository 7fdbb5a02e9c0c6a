// `postrider outbox capture`
#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

namespace {

int capture(Invocation& in) {
  const Target target("v1", "outboxes", in.value("outbox").value_or("local"), "capture");
  json::object body;
  if (const auto mode = in.value("--mode")) body["mode"] = *mode;
  if (const auto mib = in.value("--retained-mib-max")) body["retained_mib_max"] = std::stoll(*mib);
  in.out().record(body.empty() ? in.server().get(target) : in.server().send("PATCH", target, body));
  return done;
}

}  // namespace

Command capture_command() {
  return command(
      "capture", "Change data capture: how it stands, or switch it",
      {optional_argument("outbox", "Its id; `local` is the one in postrider's own database"),
       option("--mode", "MODE", "cdc: emit() writes into the log; table: into the table"),
       option("--retained-mib-max", "MIB", "Log the slot may retain before emit() writes rows again")},
      capture);
}

}  // namespace postrider::cli
