// `postrider dead-letter`
#include <boost/json/array.hpp>

#include "postrider/cli/delivery_view.hpp"
#include "postrider/cli/groups.hpp"
#include "postrider/cli/ids.hpp"
#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

namespace {

using Shown = Column::Shown;

int list(Invocation& in) {
  Target target = below_tenant(in, "dead-letters");
  target.with("endpoint", endpoint_filter(in, in.value("--tenant")));
  add_filters(in, target, {"cause", "since", "until"});
  if (in.has("--unresolved")) target.with("resolved", "false");
  return show_list(in, target,
                   {{"ID", "/id", Style::id},
                    {"TENANT", "/tenant_id", Style::text, in.has("--tenant") ? Shown::wide : Shown::always},
                    {"CAUSE", "/cause", Style::yes_no},
                    {"TYPE", "/event_type"},
                    {"ENDPOINT", "/endpoint_id", Style::id},
                    {"ATTEMPTS", "/attempts", Style::yes_no, Shown::if_room},
                    {"RESULT", "/result"},
                    {"AGE", "/dead_at", Style::age},
                    {"RESOLVED", "/resolution", Style::text, Shown::if_any},
                    {"ERROR", "/last_error_detail", Style::text, Shown::wide},
                    {"URL", "/url", Style::text, Shown::wide},
                    {"SINCE", "/dead_at", Style::time, Shown::wide}},
                   "No dead letters found.", add_result);
}

int summary(Invocation& in) {
  in.out().list(in.server().get(below_tenant(in, "dead-letters", "summary")),
                {{"UNRESOLVED", "/unresolved", Style::yes_no},
                 {"CAUSE", "/cause", Style::yes_no},
                 {"TENANT", "/tenant_id"},
                 {"ENDPOINT", "/endpoint_id", Style::id},
                 {"URL", "/url"}},
                "No unresolved dead letters.");
  return done;
}

json::array delivery_ids(Invocation& in) {
  json::array ids;
  for (const std::string& id : in.values("delivery")) {
    if (!id.starts_with("dlv_"))
      throw Misuse("\"" + id + "\" is not a delivery ID (dlv_…). To select a tenant, use --tenant " + id +
                   ".");
    ids.emplace_back(delivery_id(in, id));
  }
  return ids;
}

// IDs, a filter, or --all.
json::object selection(Invocation& in) {
  json::object body = with_reason(in);
  json::array ids = delivery_ids(in);
  bool has_filter = false;
  if (const auto endpoint = endpoint_filter(in, in.value("--tenant"))) body["endpoint"] = *endpoint;
  if (const auto cause = in.value("--cause")) body["cause"] = *cause;
  if (const auto since = in.time("--since")) body["since"] = *since;
  if (const auto until = in.time("--until")) body["until"] = *until;
  for (const char* filter : {"endpoint", "cause", "since", "until"})
    has_filter = has_filter || body.contains(filter);
  if (in.has("--all")) body["all"] = true;
  if (ids.empty() && !has_filter && !in.has("--all"))
    throw Misuse(
        "Give delivery IDs, a filter (--endpoint, --cause, --since, --until), or --all for every unresolved "
        "dead letter" +
        (in.has("--tenant") ? " of the tenant." : std::string(".")));
  if (!ids.empty() && (has_filter || in.has("--all")))
    throw Misuse("Give either delivery IDs or a filter, not both.");
  if (!ids.empty()) body["ids"] = std::move(ids);
  return body;
}

std::string described(const Invocation& in) {
  const size_t count = in.values("delivery").size();
  if (count > 0) return std::to_string(count) + (count == 1 ? " dead letter" : " dead letters");
  const std::string which =
      in.has("--all") && !in.has("--endpoint") && !in.has("--cause") ? "every" : "every matching";
  const auto tenant = in.value("--tenant");
  return which + " unresolved dead letter of " + (tenant ? "tenant " + *tenant : "ALL tenants");
}

// Whether a replay with this filter would find anything. IDs are not looked up: the replay reports them.
bool has_matches(Invocation& in, const json::object& filter) {
  if (filter.contains("ids")) return true;
  Target list = below_tenant(in, "dead-letters");
  list.with("resolved", "false").with("limit", "1");
  for (const char* name : {"endpoint", "cause", "since", "until"})
    if (const json::value* value = filter.if_contains(name)) list.with(name, cell_text(*value));
  std::optional<std::string> cursor;
  do {  // a page may be empty although more follows
    Target page_of = list;
    const json::value page = in.server().get(page_of.with("cursor", cursor));
    if (!page.at("data").as_array().empty()) return true;
    const json::value* next = page.as_object().if_contains("next_cursor");
    cursor = next && next->is_string() ? std::optional(std::string(next->get_string())) : std::nullopt;
  } while (cursor);
  return false;
}

int replay(Invocation& in) {
  const json::object body = selection(in);
  json::value replays = json::object{{"data", json::array()}};
  if (has_matches(in, body))
    replays = in.server().send("POST", below_tenant(in, "dead-letters", "replay"), body);
  const json::value* data = replays.as_object().if_contains("data");
  if (data == nullptr)
    in.out().record(replays);
  else
    in.out().list(replays, {{"ID", "/id", Style::id}, {"TENANT", "/tenant_id"}, {"STATUS", "/status"}},
                  "No unresolved dead letter matches; nothing was replayed.");
  if (data == nullptr || !data->as_array().empty()) in.out().note("Follow the deliveries: postrider tail");
  return done;
}

int discard(Invocation& in) {
  const json::object body = selection(in);
  in.confirm("Discard " + described(in) + "? This cannot be undone.");
  in.out().record(in.server().send("POST", below_tenant(in, "dead-letters", "discard"), body));
  return done;
}

}  // namespace

Command dead_letter_commands() {
  const std::vector<Parameter> filters = {
      tenant_option(), option("--endpoint", "ENDPOINT", "Only of this endpoint"),
      choice("--cause", {"rejected", "gone", "exhausted", "expired", "blocked", "endpoint_disabled"},
             "Only with this cause")};
  const std::vector<Parameter> unresolved = {
      flag("--unresolved", "Only those that were not replayed or discarded")};
  const std::vector<Parameter> which = {
      rest("delivery", "Delivery IDs; or use a filter or --all"),
      flag("--all", "Every unresolved dead letter (of --tenant, if given)")};
  const std::vector<Parameter> reason = {required(reason_option())};
  return group(
      "dead-letter", "Manage deliveries that failed permanently",
      {command("list", "List dead letters, newest first",
               join(filters, period_options(), unresolved, list_parameters(), std::vector{format_option()}),
               list)
           .example("postrider dead-letter list --tenant acme --unresolved")
           .example("postrider dead-letter list --cause exhausted --since 2d"),
       command("summary", "Count unresolved dead letters by endpoint and cause",
               {tenant_option(), watch_flag()}, summary)
           .example("postrider dead-letter summary --tenant acme"),
       command("replay", "Send dead letters again", join(which, filters, period_options(), reason), replay)
           .example("postrider dead-letter replay --tenant acme --all --reason \"endpoint fixed\"")
           .example("postrider dead-letter replay --cause exhausted --since 1d --reason outage"),
       command("discard", "Mark dead letters as resolved without sending them",
               join(which, filters, period_options(), std::vector{reason_option(), yes_flag()}), discard)
           .example("postrider dead-letter discard --tenant acme --endpoint hooks --reason \"no longer "
                    "needed\"")});
}

}  // namespace postrider::cli
