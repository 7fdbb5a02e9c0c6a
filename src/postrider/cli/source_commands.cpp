// `postrider source` and `postrider inbox`
#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

namespace {

using Kind = Field::Kind;

const std::vector<Field>& fields() {
  static const std::vector<Field> all = {
      {Kind::text, "--description", "For people"},
      {Kind::json, "--signature", "How it signs, for the provider hmac: a JSON object, or @FILE"},
      {Kind::integer, "--tolerance-seconds", "How far a timestamp may be off. Default: 300."},
      {Kind::text, "--idempotency-key",
       "Header or JSON pointer that names a message. Default: the provider's."},
      {Kind::text,
       "--deduplicate",
       "How a message that came before is recognised. Default: content where the id is not signed, else id.",
       {"content", "id"}},
      {Kind::text, "--partition-key", "Header or JSON pointer that messages are ordered by"},
      {Kind::text,
       "--ordering",
       "Whether messages of a partition key wait for each other",
       {"none", "strict"}},
      {Kind::words, "--header", "Header to keep; may be repeated", {}, "headers"},
      {Kind::integer, "--body-bytes-max", "Size of a message. Default: 1048576."},
      {Kind::json, "--consume", "Whether messages wait for consumers: true or false"},
      {Kind::json, "--forward", R"({"tenant_id": …, "type": "stripe.{type}"}, or @FILE; `none`: not)"},
      {Kind::integer, "--max-attempts", "Failures before a message is dead. Default: 8."},
  };
  return all;
}

std::vector<Parameter> with_fields(std::vector<Parameter> first) {
  for (Parameter& parameter : field_parameters(fields())) first.push_back(std::move(parameter));
  first.push_back(option("--file", "FILE", "The fields as a JSON document; - reads standard input"));
  return first;
}

template <class... Segments>
Target one(const Invocation& in, const Segments&... below) {
  return Target("v1", "sources", in.argument("source"), below...);
}

// From a file: command lines are there for everybody to see.
void set_secret(const Invocation& in, json::object& body) {
  const auto file = in.value("--secret-file");
  if (!file) return;
  std::string secret = read_text(*file);
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  body["secret"] = secret;
}

int list_sources(Invocation& in) {
  return show_list(in, Target("v1", "sources"),
                   {{"ID", "/id"},
                    {"PROVIDER", "/provider"},
                    {"URL", "/url"},
                    {"ORDERING", "/ordering"},
                    {"CREATED", "/created_at"}});
}

int create(Invocation& in) {
  json::object body = read_document(in, fields());
  body["id"] = in.argument("source");
  body["provider"] = in.argument("provider");
  set_secret(in, body);
  in.out().record(in.server().send("POST", Target("v1", "sources"), body));
  return done;
}

int show_source(Invocation& in) {
  in.out().record(in.server().get(one(in)));
  return done;
}

int update(Invocation& in) {
  in.out().record(in.server().send("PATCH", one(in), read_document(in, fields())));
  return done;
}

int remove(Invocation& in) {
  in.server().call({"DELETE", one(in)});
  in.out().note("Deleted. Its messages stay until they expire.");
  return done;
}

int rotate(Invocation& in) {
  json::object body;
  set_secret(in, body);
  if (const auto seconds = in.integer("--overlap-seconds")) body["overlap_seconds"] = *seconds;
  in.out().record(in.server().send("POST", one(in, "secrets", "rotate"), body));
  return done;
}

int list_messages(Invocation& in) {
  Target target = one(in, "messages");
  target.with("status", in.value("--status"))
      .with("since", in.value("--since"))
      .with("until", in.value("--until"));
  return show_list(in, std::move(target),
                   {{"ID", "/id"},
                    {"STATUS", "/status"},
                    {"ATTEMPTS", "/attempts"},
                    {"PROVIDER ID", "/provider_id"},
                    {"KEY", "/partition_key"},
                    {"RECEIVED", "/received_at"},
                    {"ERROR", "/last_error"}});
}

int show_message(Invocation& in) {
  in.out().record(in.server().get(one(in, "messages", in.argument("message"))));
  return done;
}

std::function<int(Invocation&)> repair(const char* verb) {
  return [verb](Invocation& in) {
    json::object body;
    const auto ids = in.values("message");
    if (ids.empty() == !in.has("--dead")) throw Misuse("give ids of messages, or --dead for the dead ones");
    if (in.has("--dead")) {
      body["status"] = "dead";
    } else {
      json::array array;
      for (const auto& id : ids) array.emplace_back(id);
      body["ids"] = std::move(array);
    }
    if (const auto reason = in.value("--reason")) body["reason"] = *reason;
    in.out().record(in.server().send("POST", one(in, "messages", verb), body));
    return done;
  };
}

std::vector<Parameter> message_filters() {
  std::vector<Parameter> all = {argument("source", "The source's id"),
                                choice("--status", {"pending", "done", "dead", "discarded"}, "Only these"),
                                option("--since", "TIME", "From this time on"),
                                option("--until", "TIME", "Before this time")};
  for (Parameter& parameter : list_parameters()) all.push_back(std::move(parameter));
  return all;
}

}  // namespace

Command source_commands() {
  const Parameter source = argument("source", "The source's id");
  const Parameter secret_file = option("--secret-file", "FILE", "The secret; - reads standard input");
  return group(
      "source", "Senders of inbound webhooks",
      {command("list", "All sources", list_parameters(), list_sources),
       command("create", "Make a source",
               with_fields(
                   {source,
                    argument("provider", "standard, svix, stripe, github, shopify, slack, twilio or hmac"),
                    secret_file}),
               create),
       command("show", "One source, and what was refused at its door", {source}, show_source),
       command("update", "Change what is given, leave the rest", with_fields({source}), update),
       command("delete", "Delete a source and its secrets", {source}, remove),
       command("rotate", "Another secret; the others end with the overlap",
               {source, secret_file, option("--overlap-seconds", "SECONDS", "Default: 86400")}, rotate)});
}

Command inbox_commands() {
  const Parameter source = argument("source", "The source's id");
  const Parameter reason = option("--reason", "TEXT", "Why");
  const Parameter messages = rest("message", "Ids of messages");
  const Parameter dead = flag("--dead", "Instead of ids: the oldest dead ones, at most 1,000");
  return group(
      "inbox", "Messages that came in",
      {command("list", "Messages of a source, the newest first", message_filters(), list_messages),
       command("show", "One message", {source, argument("message", "The message's id")}, show_message),
       command("retry", "Try dead messages again", {source, messages, dead, reason}, repair("retry")),
       command("discard", "Nobody is to work on these", {source, messages, dead, reason},
               repair("discard"))});
}

}  // namespace postrider::cli
