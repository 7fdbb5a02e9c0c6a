// `postrider source`
#include "postrider/cli/endpoint_view.hpp"
#include "postrider/cli/fields.hpp"
#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

namespace {

using Kind = Field::Kind;
using Shown = Column::Shown;

const std::vector<Field>& fields() {
  static const std::vector<Field> all = {
      {Kind::text, "--description", "Free-form description"},
      {Kind::json, "--signature", "Signature format of the provider hmac: a JSON object, or @FILE"},
      {Kind::seconds,
       "--tolerance",
       "Maximum difference of a timestamp, such as 5m (default: 5m)",
       {},
       "tolerance_seconds"},
      {Kind::text, "--idempotency-key",
       "Header or JSON pointer with the message ID (default: the provider's)"},
      {Kind::text,
       "--deduplicate",
       "How repeated messages are recognized (default: content if the ID is not signed, otherwise id)",
       {"content", "id"}},
      {Kind::text, "--partition-key", "Header or JSON pointer by which messages are ordered"},
      {Kind::text,
       "--ordering",
       "strict: process messages with the same partition key in order",
       {"none", "strict"}},
      {Kind::words, "--header", "Header to keep (repeatable)", {}, "headers", "NAME"},
      {Kind::integer, "--body-bytes-max", "Maximum size of a message (default: 1048576)"},
      {Kind::yes_no, "--consume", "Keep messages for consumers to claim (default: true)"},
      {Kind::json, "--forward",
       R"({"tenant_id": …, "type": "stripe.{type}"} or @FILE; `none` for no forwarding)"},
      {Kind::integer, "--max-attempts", "Failures before a message is dead (default: 8)"},
  };
  return all;
}

const Layout& layout() {
  static const Layout all = {
      {"", {"id", "provider", "url", "description", "secret"}},
      {"Verification", {"signature", "tolerance_seconds", "idempotency_key", "deduplicate"}},
      {"Processing",
       {"consume", "forward", "partition_key", "ordering", "max_attempts", "headers", "body_bytes_max"}},
      {"Rejected requests", {"rejections", "dropped_by_content"}},
      {"History", {"configured_by", "created_at", "updated_at"}}};
  return all;
}

template <class... Segments>
Target one(const Invocation& in, const Segments&... below) {
  return Target("v1", "sources", in.argument("source"), below...);
}

int list_sources(Invocation& in) {
  return show_list(in, Target("v1", "sources"),
                   {{"ID", "/id"},
                    {"PROVIDER", "/provider", Style::yes_no},
                    {"URL", "/url"},
                    {"ORDERING", "/ordering", Style::yes_no, Shown::wide},
                    {"AGE", "/created_at", Style::age}},
                   "No sources found. Create one with `postrider source create SOURCE PROVIDER`.");
}

// A secret from a file is already known; a generated one is shown only now.
void print_with_secret(Invocation& in, json::value response) {
  const bool was_given = in.has("--secret-file");
  if (was_given && in.out().is_for_people()) response.as_object().erase("secret");
  in.out().record(response, layout());
  if (!was_given && response.as_object().contains("secret"))
    in.out().note("Save this secret now. It will not be shown again.");
}

int create(Invocation& in) {
  json::object body = read_document(in, fields());
  body["id"] = in.argument("source");
  body["provider"] = in.argument("provider");
  set_secret(in, body);
  const json::value made = in.server().send("POST", Target("v1", "sources"), body);
  print_with_secret(in, made);
  in.out().note("Enter this URL at the provider: " + cell_text(made.at("url")));
  return done;
}

int show_source(Invocation& in) {
  json::value source = in.server().get(one(in));
  if (in.out().is_for_people()) {
    json::object& object = source.as_object();
    const json::value* dropped = object.if_contains("dropped_by_content");
    const json::value* count =
        dropped && dropped->is_object() ? dropped->get_object().if_contains("count") : nullptr;
    if (count && *count == 0) object.erase("dropped_by_content");
  }
  in.out().record(source, layout());
  return done;
}

int update(Invocation& in) {
  in.out().record(in.server().send("PATCH", one(in), read_document(in, fields())), layout());
  return done;
}

int remove(Invocation& in) {
  in.confirm("Delete source " + in.argument("source") + "? Webhooks sent to it will be rejected.");
  in.server().call({"DELETE", one(in)});
  in.out().note("Deleted source " + visible(in.argument("source")) +
                ". Its messages are kept until they expire.");
  return done;
}

int rotate(Invocation& in) {
  json::object body;
  set_secret(in, body);
  if (const auto overlap = in.duration("--overlap"))
    body["overlap_seconds"] = std::chrono::duration_cast<std::chrono::seconds>(*overlap).count();
  print_with_secret(in, in.server().send("POST", one(in, "secrets", "rotate"), body));
  return done;
}

}  // namespace

Command source_commands() {
  const Parameter source = argument("source", "Source ID");
  Parameter provider = argument("provider", "standard, svix, stripe, github, shopify, slack, twilio or hmac");
  provider.choices = {"standard", "svix", "stripe", "github", "shopify", "slack", "twilio", "hmac"};
  const std::vector<Parameter> secret_file = {with_field(
      option("--secret-file", "FILE", "File with the signing secret (- for standard input)"), "secret")};
  const std::vector<Parameter> settings = join(field_parameters(fields()), std::vector{json_file_option()});
  return group(
      "source", "Manage sources of inbound webhooks",
      {command("list", "List sources", list_parameters(), list_sources).example("postrider source list"),
       command("create", "Create a source", join({with_field(source, "id"), provider}, secret_file, settings),
               create)
           .example("postrider source create github github")
           .example("postrider source create stripe stripe --secret-file stripe-secret.txt"),
       command("show", "Show a source and its rejected requests", {source, watch_flag()}, show_source)
           .example("postrider source show github"),
       command("update", "Update the given fields", join({source}, settings), update)
           .example("postrider source update github --max-attempts 3"),
       command("delete", "Delete a source and its secrets", {source, yes_flag()}, remove)
           .example("postrider source delete github"),
       group("secrets", "Manage the secrets of a source",
             {command("rotate", "Add a new secret; the old ones expire when the overlap ends",
                      join({source, overlap_option()}, secret_file), rotate)
                  .example("postrider source secrets rotate github --overlap 2d")})});
}

}  // namespace postrider::cli
