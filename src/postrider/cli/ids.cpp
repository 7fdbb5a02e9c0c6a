#include "postrider/cli/ids.hpp"

#include <algorithm>
#include <boost/json/array.hpp>

#include "postrider/cli/human.hpp"

namespace postrider::cli {

namespace {

using namespace std::chrono_literals;

constexpr int kPagesMax = 8;
constexpr size_t kShownMax = 5;

std::vector<std::string> find_matches(Invocation& in, const IdPattern& pattern, const Target& list) {
  std::vector<std::string> found;
  std::optional<std::string> cursor;
  for (int page = 0; page < kPagesMax; ++page) {
    Target target = list;
    const json::value response = in.server().get(target.with("limit", "250").with("cursor", cursor));
    for (const json::value& row : response.at("data").as_array()) {
      const json::value* id = row.as_object().if_contains("id");
      if (id && id->is_string() && pattern.matches(id->get_string())) found.emplace_back(id->get_string());
    }
    const json::value* next = response.as_object().if_contains("next_cursor");
    if (!next || !next->is_string()) break;
    cursor = std::string(next->get_string());
  }
  return found;
}

std::string chosen(const std::string& text, const std::vector<std::string>& found) {
  if (found.empty()) return text;  // the server says what it does not know
  if (found.size() == 1) return found[0];
  std::string message = "\"" + text + "\" matches " + std::to_string(found.size()) + " IDs; use a whole one:";
  for (size_t i = 0; i < std::min(found.size(), kShownMax); ++i) message += "\n  " + found[i];
  throw Misuse(message);
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
  std::vector<std::string> found = within(0us, 1ms);
  if (found.empty()) found = within(2s, 10s);  // it was stored later than its ID was made
  return chosen(text, found);
}

}  // namespace

std::string tenant_of(const Invocation& in) {
  return in.argument("tenant");
}

std::string endpoint_of(Invocation& in) {
  return whole_id(in, in.argument("endpoint"), "ep_", Target("v1", "tenants", tenant_of(in), "endpoints"));
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
  if (!text || !tenant) return text;
  return whole_id(in, *text, "ep_", Target("v1", "tenants", *tenant, "endpoints"));
}

std::optional<std::string> event_filter(Invocation& in, const std::optional<std::string>& tenant) {
  const auto text = in.value("--event");
  if (!text || !tenant) return text;
  return whole_timed_id(in, *text, "evt_", Target("v1", "tenants", *tenant, "events"));
}

}  // namespace postrider::cli
