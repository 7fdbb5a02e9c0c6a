#include "postrider/cli/ids.hpp"

#include <algorithm>
#include <boost/json/array.hpp>

#include "postrider/cli/human.hpp"

namespace postrider::cli {

namespace {

using namespace std::chrono_literals;

constexpr size_t kPageRows = 250;
constexpr size_t kPagesMax = 8;
constexpr size_t kShownMax = 5;

struct Matches {
  std::vector<std::string> ids;
  bool is_complete = true;  // false: only the first kPagesMax pages were searched
};

void add_matches(const json::value& response, const IdPattern& pattern, std::vector<std::string>& ids) {
  for (const json::value& row : response.at("data").as_array()) {
    const json::value* id = row.as_object().if_contains("id");
    if (id && id->is_string() && pattern.matches(id->get_string())) ids.emplace_back(id->get_string());
  }
}

Matches find_matches(Invocation& in, const IdPattern& pattern, const Target& list) {
  Matches matches;
  std::optional<std::string> cursor;
  for (size_t page = 0; page < kPagesMax; ++page) {
    Target target = list;
    const json::value response =
        in.server().get(target.with("limit", std::to_string(kPageRows)).with("cursor", cursor));
    add_matches(response, pattern, matches.ids);
    const json::value* next = response.as_object().if_contains("next_cursor");
    if (!next || !next->is_string()) return matches;
    cursor = std::string(next->get_string());
  }
  matches.is_complete = false;
  return matches;
}

std::string chosen(const std::string& text, const Matches& matches) {
  const std::vector<std::string>& found = matches.ids;
  if (found.empty() && !matches.is_complete)
    throw Misuse("\"" + text + "\" matches none of the first " + std::to_string(kPagesMax * kPageRows) +
                 " IDs, and there are more. Give the full ID.");
  if (found.empty()) return text;  // the server reports that it is unknown
  if (found.size() == 1) return found[0];
  std::string message =
      "\"" + text + "\" matches " + std::to_string(found.size()) + " IDs; give the full ID of one:";
  for (size_t i = 0; i < std::min(found.size(), kShownMax); ++i) message += "\n  " + found[i];
  throw Misuse(message);
}

// Without a tenant there is no list in which to find a short ID.
std::string full_id(const std::string& text, std::string_view kind) {
  const auto pattern = parse_id_pattern(text);
  if (pattern && pattern->kind == kind)
    throw Misuse("\"" + text + "\" is a short ID: add --tenant TENANT, or give the full ID.");
  return text;
}

std::string whole_id(Invocation& in, const std::string& text, std::string_view kind, const Target& list) {
  const auto pattern = parse_id_pattern(text);
  if (!pattern || pattern->kind != kind) return text;
  return chosen(text, find_matches(in, *pattern, list));
}

// IDs begin with the time at which they were made, so only that millisecond has to be searched.
std::string whole_timed_id(Invocation& in, const std::string& text, std::string_view kind,
                           const Target& list) {
  const auto pattern = parse_id_pattern(text);
  if (!pattern || pattern->kind != kind) return text;
  const auto made_at = pattern->made_at();
  if (!made_at) throw Misuse("\"" + text + "\" is too short: give at least the first 12 digits of the ID.");
  const auto within = [&](base::Microseconds before, base::Microseconds after) {
    Target target = list;
    target.with("since", base::to_rfc3339(*made_at - before))
        .with("until", base::to_rfc3339(*made_at + after));
    return find_matches(in, *pattern, target);
  };
  Matches found = within(0us, 1ms);
  if (found.ids.empty()) found = within(2s, 10s);  // it was stored later than its ID was made
  return chosen(text, found);
}

}  // namespace

std::string tenant_of(const Invocation& in) {
  return in.argument("tenant");
}

std::string endpoint_of(Invocation& in) {
  return whole_id(in, in.argument("endpoint"), "ep_", Target("v1", "tenants", tenant_of(in), "endpoints"));
}

std::string secret_of(Invocation& in) {
  const std::string text = in.argument("secret");
  const auto pattern = parse_id_pattern(text);
  if (!pattern || pattern->kind != "sec_") return text;
  Matches matches;  // an endpoint has only a few secrets: one page without a limit
  const Target list("v1", "tenants", tenant_of(in), "endpoints", endpoint_of(in), "secrets");
  add_matches(in.server().get(list), *pattern, matches.ids);
  return chosen(text, matches);
}

std::string event_of(Invocation& in) {
  return whole_timed_id(in, in.argument("event"), "evt_", Target("v1", "tenants", tenant_of(in), "events"));
}

std::string replay_of(Invocation& in) {
  return whole_id(in, in.argument("replay"), "rpl_", Target("v1", "tenants", tenant_of(in), "replays"));
}

std::string key_of(Invocation& in) {
  return whole_id(in, in.argument("key"), "key_", Target("v1", "keys"));
}

std::string token_of(Invocation& in) {
  return whole_id(in, in.argument("token"), "key_", Target("v1", "tenants", tenant_of(in), "tokens"));
}

std::string delivery_id(Invocation& in, const std::string& text) {
  const auto tenant = in.value("--tenant");
  const Target list = tenant ? Target("v1", "tenants", *tenant, "deliveries") : Target("v1", "deliveries");
  return whole_timed_id(in, text, "dlv_", list);
}

std::string message_id(Invocation& in, const std::string& source, const std::string& text) {
  return whole_timed_id(in, text, "msg_", Target("v1", "sources", source, "messages"));
}

std::optional<std::string> endpoint_filter(Invocation& in, const std::optional<std::string>& tenant) {
  const auto text = in.value("--endpoint");
  if (!text) return text;
  if (!tenant) return full_id(*text, "ep_");
  return whole_id(in, *text, "ep_", Target("v1", "tenants", *tenant, "endpoints"));
}

std::optional<std::string> event_filter(Invocation& in, const std::optional<std::string>& tenant) {
  const auto text = in.value("--event");
  if (!text) return text;
  if (!tenant) return full_id(*text, "evt_");
  return whole_timed_id(in, *text, "evt_", Target("v1", "tenants", *tenant, "events"));
}

}  // namespace postrider::cli
