// `postrider inbox`
#include <boost/json/array.hpp>

#include "postrider/cli/groups.hpp"
#include "postrider/cli/ids.hpp"
#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

namespace {

using Shown = Column::Shown;

template <class... Segments>
Target messages_of(const Invocation& in, const Segments&... below) {
  return Target("v1", "sources", in.argument("source"), "messages", below...);
}

int list(Invocation& in) {
  Target target = messages_of(in);
  add_filters(in, target, {"status", "since", "until"});
  return show_list(in, std::move(target),
                   {{"ID", "/id", Style::id},
                    {"STATUS", "/status", Style::yes_no},
                    {"ATTEMPTS", "/attempts", Style::yes_no},
                    {"PROVIDER ID", "/provider_id"},
                    {"KEY", "/partition_key", Style::text, Shown::if_any},
                    {"AGE", "/received_at", Style::age},
                    {"ERROR", "/last_error", Style::text, Shown::if_any},
                    {"RECEIVED", "/received_at", Style::time, Shown::wide}},
                   "No messages found.");
}

int show(Invocation& in) {
  const std::string id = message_id(in, in.argument("source"), in.argument("message"));
  in.out().record(in.server().get(messages_of(in, id)),
                  {{"",
                    {"id", "source", "status", "attempts", "last_error", "provider_id", "partition_key",
                     "event_id", "received_at", "due_at", "done_at", "dead_at", "leased_by"}},
                   {"", {"headers"}},
                   {"", {"body"}}});
  return done;
}

std::function<int(Invocation&)> repair(const char* verb, const char* question) {
  return [verb, question](Invocation& in) {
    json::object body = with_reason(in);
    const std::vector<std::string> ids = in.values("message");
    if (ids.empty() == !in.has("--dead"))
      throw Misuse("Give message IDs, or --dead for the oldest dead messages.");
    if (question != nullptr)
      in.confirm(std::string(question) + " " +
                 (ids.empty() ? "all dead messages" : std::to_string(ids.size()) + " messages") + "?");
    if (in.has("--dead")) {
      body["status"] = "dead";
    } else {
      json::array array;
      for (const std::string& id : ids) array.emplace_back(message_id(in, in.argument("source"), id));
      body["ids"] = std::move(array);
    }
    in.out().record(in.server().send("POST", messages_of(in, verb), body));
    return done;
  };
}

}  // namespace

Command inbox_commands() {
  const Parameter source = argument("source", "Source ID");
  const Parameter messages = rest("message", "Message IDs, msg_…");
  const Parameter dead = flag("--dead", "Instead of IDs: the oldest dead messages, at most 1,000");
  return group("inbox", "Inspect and process received webhooks",
               {command("list", "List a source's messages, newest first",
                        join({source, choice("--status", {"pending", "done", "dead", "discarded"},
                                             "Only with this status")},
                             period_options(), list_parameters()),
                        list)
                    .example("postrider inbox list github --status dead"),
                command("show", "Show a message with its headers and body",
                        {source, argument("message", "Message ID, msg_…")}, show)
                    .example("postrider inbox show github msg_01980a6c7d5e7b0e9d0c2f6f8a4b3c21"),
                command("retry", "Retry dead messages", {source, messages, dead, reason_option()},
                        repair("retry", nullptr))
                    .example("postrider inbox retry github --dead --reason \"consumer fixed\""),
                command("discard", "Discard messages", {source, messages, dead, reason_option(), yes_flag()},
                        repair("discard", "Discard"))
                    .example("postrider inbox discard github --dead --reason \"test data\"")});
}

}  // namespace postrider::cli
