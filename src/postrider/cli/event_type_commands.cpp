// `postrider event-type`
#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

namespace {

Target one(const Invocation& in) {
  return Target("v1", "event-types", in.argument("name"));
}

int list(Invocation& in) {
  return show_list(in, Target("v1", "event-types"),
                   {{"NAME", "/name"},
                    {"VALIDATION", "/validation"},
                    {"DESCRIPTION", "/description"},
                    {"UPDATED", "/updated_at"}});
}

int show(Invocation& in) {
  in.out().record(in.server().get(one(in)));
  return done;
}

int put(Invocation& in) {
  const std::vector<Field> no_fields;
  in.out().record(in.server().send("PUT", one(in), read_document(in, no_fields)));
  return done;
}

int remove(Invocation& in) {
  in.server().call({"DELETE", one(in)});
  in.out().note("Deleted. Events and subscriptions stay as they are.");
  return done;
}

}  // namespace

Command event_type_commands() {
  const Parameter name = argument("name", "The event type, like invoice.paid");
  const Parameter file = option("--file", "FILE", "The document as JSON; - reads standard input");
  return group("event-type", "The catalogue of event types, with their schemas",
               {command("list", "All event types", list_parameters(), list),
                command("show", "One event type with its versions", {name}, show),
                command("put", "Make it, or turn it into what the file says", {name, file}, put),
                command("delete", "Take it out of the catalogue", {name}, remove)});
}

}  // namespace postrider::cli
