// `postrider tail`: attempts in real time
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <cstdio>

#include "postrider/cli/event_stream.hpp"
#include "postrider/cli/groups.hpp"
#include "postrider/cli/human.hpp"
#include "postrider/cli/ids.hpp"
#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

namespace {

// "10:15:30  delivered  204  12 ms  acme  invoice.paid  hooks  dlv_… #1  error"
std::string line_of(const json::object& attempt, const View& view) {
  const auto member = [&attempt](std::string_view name) {
    const json::value* value = attempt.if_contains(name);
    return value == nullptr ? json::value() : *value;
  };
  const auto time =
      member("started_at").is_string() ? base::parse_rfc3339(member("started_at").as_string()) : std::nullopt;
  std::string text = (time ? time_text(*time).substr(11, 8) : "-") + "  " + cell_text(member("outcome")) +
                     "  " + cell_text(member("status_code")) + "  " +
                     styled(member("latency_ms"), Style::milliseconds, view) + "  " +
                     cell_text(member("tenant_id")) + "  " + cell_text(member("event_type")) + "  " +
                     styled(member("endpoint_id"), Style::id, view) + "  " +
                     styled(member("delivery_id"), Style::id, view) + " #" + cell_text(member("attempt"));
  if (!member("error").is_null()) text += "  " + cell_text(member("error"));
  return text;
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
    in.out().line(line_of(whole, in.out().view()));
  }
  std::fflush(stdout);
  return true;
}

int tail(Invocation& in) {
  StreamOptions options{Target("v1", "stream"), std::nullopt, std::nullopt};
  if (const auto tenant = in.value("--tenant")) options.target = Target("v1", "tenants", *tenant, "stream");
  options.target.with("endpoint", endpoint_filter(in, in.value("--tenant")));
  if (!in.as_json()) options.target.with("only", "attempts");
  if (const auto since = in.time("--since")) options.after = "@" + *since;
  const auto limit = in.duration("--for");
  if (limit) options.until = std::chrono::steady_clock::now() + *limit;
  Seen seen;
  EventStream stream(in, std::move(options));
  stream.follow([&](const StreamMessage& message) { return show(in, seen, message); });
  if (limit) in.out().note("Stopped after " + duration_text(*limit) + ".");
  return done;
}

}  // namespace

Command tail_command() {
  return command("tail", "Stream delivery attempts in real time",
                 {option("--tenant", "TENANT", "Only this tenant; includes its events with --json"),
                  option("--endpoint", "ENDPOINT", "Only this endpoint"),
                  option("--since", "TIME", "Start with attempts since this time, at most 2m ago"),
                  option("--for", "DURATION", "Stop after this time, such as 30s")},
                 tail)
      .example("postrider tail")
      .example("postrider tail --tenant acme --endpoint hooks --json");
}

}  // namespace postrider::cli
