// `postrider event-type`
#include "postrider/cli/fields.hpp"
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
                    {"VALIDATION", "/validation", Style::yes_no},
                    {"DESCRIPTION", "/description"},
                    {"UPDATED", "/updated_at", Style::age}},
                   "The catalogue is empty. Add a type with `postrider event-type put NAME --file FILE`.");
}

int show(Invocation& in) {
  in.out().record(
      in.server().get(one(in)),
      {{"", {"name", "description", "validation"}}, {"", {"versions"}}, {"", {"created_at", "updated_at"}}});
  return done;
}

int put(Invocation& in) {
  const std::vector<Field> no_fields;
  in.out().record(in.server().send("PUT", one(in), read_document(in, no_fields)));
  return done;
}

int remove(Invocation& in) {
  in.confirm("Delete event type " + in.argument("name") + " from the catalogue?");
  in.server().call({"DELETE", one(in)});
  in.out().note("Deleted. Events and subscriptions are unchanged.");
  return done;
}

}  // namespace

Command event_type_commands() {
  const Parameter name = argument("name", "Event type, such as invoice.paid");
  return group(
      "event-type", "Manage the catalogue of event types",
      {command("list", "List event types", list_parameters(), list).example("postrider event-type list"),
       command("show", "Show an event type and its versions", {name}, show)
           .example("postrider event-type show invoice.paid"),
       command("put", "Create or replace an event type", {name, required(json_file_option())}, put)
           .alias("create")
           .example("postrider event-type put invoice.paid --file invoice.paid.json"),
       command("delete", "Delete an event type from the catalogue", {name, yes_flag()}, remove)
           .example("postrider event-type delete invoice.paid")});
}

}  // namespace postrider::cli
