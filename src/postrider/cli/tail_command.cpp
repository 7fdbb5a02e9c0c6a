// `postrider tail`: attempts as they happen
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

namespace {

// Puts server-sent events together from what arrives; `take` gets kind and data of each.
class EventReader {
 public:
  template <class Take>
  void feed(std::string_view data, Take take) {
    buffer_ += data;
    for (size_t end = buffer_.find("\n\n"); end != std::string::npos; end = buffer_.find("\n\n")) {
      std::string kind = "message", text;
      std::string_view message = std::string_view(buffer_).substr(0, end);
      while (!message.empty()) {
        const size_t line_end = std::min(message.find('\n'), message.size());
        const std::string_view line = message.substr(0, line_end);
        if (line.starts_with("event: ")) kind = line.substr(7);
        if (line.starts_with("data: ")) text += line.substr(6);
        message.remove_prefix(std::min(line_end + 1, message.size()));
      }
      if (!text.empty()) take(kind, text);
      buffer_.erase(0, end + 2);
    }
  }

 private:
  std::string buffer_;
};

std::string line_of(const json::object& attempt) {
  const auto cell = [&attempt](std::string_view name) {
    const json::value* value = attempt.if_contains(name);
    return value == nullptr ? std::string("-") : cell_text(*value);
  };
  return cell("started_at") + "  " + cell("outcome") + "  " + cell("status_code") + "  " + cell("tenant_id") +
         "  " + cell("event_type") + "  " + cell("endpoint_id") + "  " + cell("delivery_id") + " #" +
         cell("attempt") + "  " + cell("latency_ms") + " ms  " + cell("error");
}

void show(Invocation& in, const std::string& kind, const std::string& text) {
  boost::system::error_code error;
  const json::value value = json::parse(text, error);
  if (error || !value.is_object()) return;
  if (in.as_json()) {
    json::object whole = value.as_object();
    whole["kind"] = kind;
    in.out().line(json::serialize(whole));
  } else if (kind == "gap") {
    in.out().note(cell_text(value.as_object().at("detail")));
  } else if (kind == "attempt") {
    in.out().line(line_of(value.as_object()));
  }
}

int tail(Invocation& in) {
  Target target("v1", "stream");
  if (const auto tenant = in.value("--tenant")) target = Target("v1", "tenants", *tenant, "stream");
  target.with("endpoint", in.value("--endpoint"));
  RemoteCall call{"GET", target};
  if (const auto seconds = in.integer("--seconds")) {
    call.timeout = std::chrono::seconds(*seconds);
  } else {
    call.timeout = std::chrono::hours(24);
  }
  EventReader reader;
  in.server().stream(call, [&](std::string_view data) {
    reader.feed(data, [&in](const std::string& kind, const std::string& text) { show(in, kind, text); });
  });
  in.out().note("The stream has ended.");
  return done;
}

}  // namespace

Command tail_command() {
  return command(
      "tail", "Attempts as they happen",
      {option("--tenant", "TENANT", "Only this tenant, with its events (--json)"),
       option("--endpoint", "ENDPOINT", "Only this endpoint"), option("--seconds", "N", "Only for so long")},
      tail);
}

}  // namespace postrider::cli
