// `postrider tail`: attempts as they happen
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <cstdio>

#include "postrider/cli/event_stream.hpp"
#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

namespace {

std::string line_of(const json::object& attempt) {
  const auto cell = [&attempt](std::string_view name) {
    const json::value* value = attempt.if_contains(name);
    return value == nullptr ? std::string("-") : cell_text(*value);
  };
  return cell("started_at") + "  " + cell("outcome") + "  " + cell("status_code") + "  " + cell("tenant_id") +
         "  " + cell("event_type") + "  " + cell("endpoint_id") + "  " + cell("delivery_id") + " #" +
         cell("attempt") + "  " + cell("latency_ms") + " ms  " + cell("error");
}

// False: it was shown before.
bool show(Invocation& in, Seen& seen, const StreamMessage& message) {
  boost::system::error_code error;
  const json::value value = json::parse(message.data, error);
  if (error || !value.is_object()) return true;
  json::object whole = value.as_object();
  const char* const name = message.kind == "event" ? "id" : "delivery_id";
  std::string key = message.kind;
  if (whole.contains(name)) key += cell_text(whole.at(name));
  if (whole.contains("attempt")) key += "#" + cell_text(whole.at("attempt"));
  if (!seen.add(key)) return false;
  if (in.as_json()) {
    whole["kind"] = message.kind;
    in.out().line(json::serialize(whole));
  } else if (message.kind == "attempt") {
    in.out().line(line_of(whole));
  }
  std::fflush(stdout);
  return true;
}

int tail(Invocation& in) {
  StreamOptions options{Target("v1", "stream"), std::nullopt, std::nullopt};
  if (const auto tenant = in.value("--tenant")) options.target = Target("v1", "tenants", *tenant, "stream");
  options.target.with("endpoint", in.value("--endpoint"));
  if (!in.as_json()) options.target.with("only", "attempts");
  if (const auto since = in.value("--since")) options.after = "@" + *since;
  if (const auto seconds = in.integer("--seconds"))
    options.until = std::chrono::steady_clock::now() + std::chrono::seconds(*seconds);
  Seen seen;
  EventStream stream(in, std::move(options));
  stream.follow([&](const StreamMessage& message) { return show(in, seen, message); });
  in.out().note("The time is over.");
  return done;
}

}  // namespace

Command tail_command() {
  return command(
      "tail", "Attempts as they happen",
      {option("--tenant", "TENANT", "Only this tenant, with its events (--json)"),
       option("--endpoint", "ENDPOINT", "Only this endpoint"),
       option("--since", "TIME", "Also what was sent from then on, RFC 3339; at most two minutes ago"),
       option("--seconds", "N", "Only for so long")},
      tail);
}

}  // namespace postrider::cli
