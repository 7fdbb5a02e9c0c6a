// `postrider outbox capture`
#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

namespace {

int capture(Invocation& in) {
  const Target target("v1", "outboxes", in.value("outbox").value_or("local"), "capture");
  json::object body;
  if (const auto mode = in.value("--mode")) body["mode"] = *mode;
  if (const auto mib = in.integer("--retained-mib-max")) body["retained_mib_max"] = *mib;
  in.out().record(body.empty() ? in.server().get(target) : in.server().send("PATCH", target, body));
  return done;
}

}  // namespace

Command capture_command() {
  return command("capture", "Show or change change data capture of an outbox",
                 {optional_argument("outbox", "Outbox ID (default: local, in postrider's own database)"),
                  choice("--mode", {"cdc", "table"}, "cdc: emit() writes to the log; table: to the table"),
                  option("--retained-mib-max", "MIB",
                         "Log that the slot may retain before emit() writes rows again")},
                 capture)
      .example("postrider outbox capture")
      .example("postrider outbox capture local --mode cdc");
}

}  // namespace postrider::cli
