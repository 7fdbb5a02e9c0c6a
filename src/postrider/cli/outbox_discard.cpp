// postrider outbox discard
#include <charconv>

#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

namespace {

int64_t row_id(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw Misuse("Invalid value \"" + text +
                 "\" for --row: expected a row ID from `postrider outbox stuck`.");
  return number;
}

int discard(Invocation& in) {
  json::array ids;
  for (const std::string& row : in.values("--row")) ids.push_back(row_id(row));
  if (ids.empty() != in.has("--all")) throw Misuse("Give either --row ID (repeatable) or --all.");
  json::object body;
  if (ids.empty())
    body["all"] = true;
  else
    body["ids"] = ids;
  if (const auto reason = in.value("--reason")) body["reason"] = *reason;
  in.confirm(ids.empty() ? std::string("Discard all stuck rows? Their events are never published.")
                         : "Discard " + std::to_string(ids.size()) +
                               " stuck rows? Their events are never published.");
  const Target target("v1", "outboxes", in.value("outbox").value_or("local"), "stuck", "discard");
  in.out().record(in.server().send("POST", target, body));
  return done;
}

}  // namespace

Command outbox_discard_command() {
  return command("discard", "Delete stuck rows; their events are never published",
                 {optional_argument("outbox", "Outbox ID (default: local, in postrider's own database)"),
                  list_option("--row", "ID", "Only this row (repeatable)"), flag("--all", "All stuck rows"),
                  reason_option(), yes_flag()},
                 discard)
      .example("postrider outbox discard local --row 17 --reason 'test data'");
}

}  // namespace postrider::cli
