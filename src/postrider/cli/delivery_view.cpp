#include "postrider/cli/delivery_view.hpp"

#include <boost/json/array.hpp>
#include <sstream>

#include "postrider/cli/endpoint_view.hpp"
#include "postrider/cli/human.hpp"

namespace postrider::cli {

namespace {

const json::value* member(const json::object& object, const char* name) {
  const json::value* value = object.if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::string text_of(const json::object& object, const char* name) {
  const json::value* value = member(object, name);
  return value ? cell_text(*value) : "";
}

std::string cause_text(const std::string& cause) {
  if (cause == "rejected") return "the endpoint rejected it, and on_rejected is dead_letter";
  if (cause == "gone") return "the endpoint responded 410 Gone and was disabled";
  if (cause == "exhausted") return "all attempts were used";
  if (cause == "expired") return "it was not delivered before the endpoint's give-up time";
  if (cause == "blocked") return "the destination is not allowed";
  if (cause == "endpoint_disabled") return "the endpoint is disabled";
  return cause;
}

std::string clock_of(const json::object& attempt) {
  const json::value* at = member(attempt, "started_at");
  const auto time = at && at->is_string() ? base::parse_rfc3339(at->get_string()) : std::nullopt;
  return time ? time_text(*time).substr(0, 19) : "-";
}

std::string outcome_text(const json::object& attempt, const View& view) {
  const std::string outcome = text_of(attempt, "outcome");
  if (outcome == "dead_letter") return "dead letter";
  if (outcome != "retrying") return outcome;
  const json::value* next = member(attempt, "next_attempt_at");
  return next ? "retry " + styled(*next, Style::time, view) : "retry";
}

std::string result_of(const json::object& attempt) {
  if (const json::value* status = member(attempt, "status_code")) return http_status_text(*status);
  return text_of(attempt, "error_detail");
}

const json::object* object_of(const json::object& object, const char* name) {
  const json::value* value = member(object, name);
  return value ? value->if_object() : nullptr;
}

bool is_set(const json::object& object, const char* name) {
  const json::value* value = member(object, name);
  return value && value->is_bool() && value->get_bool();
}

std::string bytes_of(const json::object& object, const char* name) {
  const json::value* value = member(object, name);
  return value && value->is_int64() ? bytes_text(value->get_int64()) : "";
}

// Empty: nothing was sent.
std::string request_text(const json::object& attempt) {
  const std::string url = text_of(attempt, "url"), bytes = bytes_of(attempt, "bytes_sent");
  if (url.empty()) return "";
  std::string text = "to " + url;
  if (!bytes.empty()) text += ", sent " + bytes;
  if (is_set(attempt, "is_resent")) return text + " twice: the reused connection was closed";
  if (member(attempt, "connection_reused") != nullptr)
    text += is_set(attempt, "connection_reused") ? " on a reused connection" : " on a new connection";
  return text;
}

std::string received_text(const json::object& response) {
  const std::string type = text_of(response, "content_type"), bytes = bytes_of(response, "bytes");
  if (bytes.empty()) return "";
  return "received " + bytes + (type.empty() ? "" : " of " + type) +
         (is_set(response, "is_truncated") ? ", more than the preview" : "");
}

void print_response(const Output& out, const json::object& attempt) {
  if (const std::string request = request_text(attempt); !request.empty()) out.line("    " + request);
  if (const json::object* response = object_of(attempt, "response")) {
    if (const std::string received = received_text(*response); !received.empty()) out.line("    " + received);
    if (const json::object* headers = object_of(*response, "headers"))
      for (const auto& header : *headers)
        out.line("    " + std::string(header.key()) + ": " + cell_text(header.value()));
  }
  const json::value* preview = member(attempt, "response_preview");
  if (preview == nullptr || !preview->is_string()) return;
  std::istringstream lines{std::string(preview->get_string())};
  for (std::string line; std::getline(lines, line);) out.line("    " + visible(line));
}

void print_attempt(const Output& out, const json::object& attempt) {
  const View view = out.view();
  const json::value* phases = member(attempt, "phases");
  std::string duration;
  if (phases != nullptr && phases->is_object())
    if (const json::value* total = member(phases->get_object(), "total_us"))
      duration = "  " + styled(*total, Style::microseconds, view);
  const std::string probe = text_of(attempt, "probe");
  const bool ended_outage = probe.empty() && text_of(attempt, "kind") == "probe";
  out.line("  #" + text_of(attempt, "attempt") + "  " + clock_of(attempt) + "  " + result_of(attempt) +
           duration + "  → " + (probe.empty() ? outcome_text(attempt, view) : "probe " + probe) +
           (ended_outage ? " (probe)" : ""));
  print_response(out, attempt);
}

json::object head_of(const json::object& delivery) {
  json::object head = delivery;
  head["attempts"] = text_of(delivery, "attempts") + " of " + text_of(delivery, "max_attempts");
  for (const char* field : {"max_attempts", "timeline", "last_attempt_at", "last_status_code", "last_error",
                            "last_error_detail", "dead_letter", "claimed_by"})
    head.erase(field);
  if (const json::value* letter = member(delivery, "dead_letter"); letter && letter->is_object()) {
    const json::object& dead = letter->get_object();
    head["status"] = "dead_letter: " + cause_text(text_of(dead, "cause"));
    if (const json::value* at = member(dead, "dead_at")) head["dead_at"] = *at;
    if (const json::value* how = member(dead, "resolution")) head["resolution"] = *how;
    if (const json::value* at = member(dead, "resolved_at")) head["resolved_at"] = *at;
  }
  return head;
}

const Layout& layout() {
  static const Layout all = {
      {"",
       {"id", "status", "waiting_for", "attempts", "event_id", "event_type", "subject", "tenant_id",
        "endpoint_id", "url", "created_at", "next_attempt_at", "next_probe_at", "give_up_at", "delivered_at",
        "dead_at", "resolution", "resolved_at", "replay_id"}}};
  return all;
}

}  // namespace

void add_result(json::object& row) {
  if (const json::value* status = member(row, "last_status_code"))
    row["result"] = cell_text(*status);
  else
    row["result"] = text_of(row, "last_error");
}

std::string next_step(const json::object& delivery) {
  const std::string status = text_of(delivery, "status"), id = text_of(delivery, "id");
  const json::value* letter = member(delivery, "dead_letter");
  const bool is_resolved = letter && letter->is_object() && member(letter->get_object(), "resolution");
  if (status == "dead_letter" && !is_resolved)
    return "Send it again:  postrider delivery replay " + id + " --reason \"…\"";
  if (status == "retrying" || status == "pending") {
    const std::string waiting = text_of(delivery, "waiting_for");
    const std::string where = text_of(delivery, "tenant_id") + " " + text_of(delivery, "endpoint_id");
    if (waiting == "endpoint_paused") return "Resume the endpoint:  postrider endpoint resume " + where;
    if (waiting == "tenant_paused")
      return "Resume the tenant:  postrider tenant resume " + text_of(delivery, "tenant_id");
    if (waiting == "brake") return "See the emergency controls:  postrider brakes show";
    return "Retry it now:  postrider delivery retry " + id;
  }
  return "";
}

void print_delivery(Invocation& in, const json::value& delivery) {
  if (!in.out().is_for_people()) return in.out().record(delivery);
  const json::object& whole = delivery.as_object();
  in.out().record(head_of(whole), layout());
  const json::value* timeline = member(whole, "timeline");
  in.out().line(timeline && !timeline->as_array().empty() ? "\nAttempts" : "\nNo attempt yet.");
  if (timeline != nullptr)
    for (const json::value& attempt : timeline->as_array()) print_attempt(in.out(), attempt.as_object());
  if (const std::string next = next_step(whole); !next.empty()) in.out().line("\n" + next);
}

void print_delivery_summary(Invocation& in, const json::value& delivery) {
  if (!in.out().is_for_people() || !delivery.as_object().contains("attempts"))
    return in.out().record(delivery);
  in.out().record(head_of(delivery.as_object()), layout());
}

}  // namespace postrider::cli
