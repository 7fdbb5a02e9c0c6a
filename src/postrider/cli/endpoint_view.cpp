#include "postrider/cli/endpoint_view.hpp"

#include <sstream>

#include "postrider/cli/human.hpp"
#include "postrider/http/response.hpp"

namespace postrider::cli {

namespace {

const Layout& whole_layout() {
  static const Layout layout = {
      {"", {"id", "tenant_id", "url", "description", "event_types", "secret"}},
      {"Status",
       {"status", "status_reason", "status_since", "status_by", "health", "failing_since", "last_success_at",
        "last_failure_at", "breaker", "last_probe_at", "last_probe_error", "held_reason", "held_since"}},
      {"Queue", {"pending", "oldest_pending_at", "ordering", "max_in_flight", "rate_per_second"}},
      {"Retries", {"timeout_ms", "max_attempts", "give_up_seconds", "retry_schedule", "on_rejected"}},
      {"Request", {"signature", "headers", "allow_networks", "metadata"}},
      {"History", {"created_at", "updated_at"}},
  };
  return layout;
}

// Normal values are not shown.
json::object for_people(const json::value& endpoint) {
  json::object shown = endpoint.as_object();
  if (shown.contains("breaker") && shown["breaker"] == "closed") shown.erase("breaker");
  const bool is_capped = shown.contains("pending_is_capped") && shown["pending_is_capped"] == true;
  if (is_capped) shown["pending"] = cell_text(shown["pending"]) + " or more";
  shown.erase("pending_is_capped");
  return shown;
}

void print_only(Invocation& in, const json::value& endpoint, const std::vector<std::string>& fields) {
  if (!in.out().is_for_people()) return in.out().record(endpoint);
  json::object shown;
  for (const std::string& field : fields)
    if (const json::value* value = endpoint.as_object().if_contains(field)) shown[field] = *value;
  in.out().record(shown);
}

void print_headers(const Output& out, const char* mark, const json::value* headers) {
  if (headers == nullptr || !headers->is_object()) return;
  for (const auto& header : headers->get_object())
    out.line(std::string(mark) + visible(header.key()) + ": " + cell_text(header.value()));
}

void print_body(const Output& out, const char* mark, const json::value* body) {
  if (body == nullptr || !body->is_string() || body->get_string().empty()) return;
  out.line(mark);
  std::istringstream lines{std::string(body->get_string())};
  for (std::string line; std::getline(lines, line);) out.line(std::string(mark) + visible(line));
}

std::string path_of(const std::string& url) {
  const size_t host = url.find("://");
  const size_t path = host == std::string::npos ? std::string::npos : url.find('/', host + 3);
  return path == std::string::npos ? "/" : url.substr(path);
}

std::string host_of(const std::string& url) {
  const size_t at = url.find("://");
  const std::string rest = at == std::string::npos ? url : url.substr(at + 3);
  return rest.substr(0, rest.find('/'));
}

void print_timings(const Output& out, const json::value& exchange) {
  const json::value* phases = exchange.as_object().if_contains("phases");
  if (phases == nullptr || !phases->is_object()) return;
  std::string text;
  const std::pair<const char*, const char*> names[] = {{"lookup_us", "DNS"},
                                                       {"connect_us", "connect"},
                                                       {"tls_us", "TLS"},
                                                       {"first_byte_us", "first byte"},
                                                       {"total_us", "total"}};
  for (const auto& [field, name] : names) {
    const json::value* value = phases->get_object().if_contains(field);
    if (value == nullptr || value->is_null()) continue;
    text += (text.empty() ? "" : ", ") + std::string(name) + " " +
            styled(*value, Style::microseconds, out.view());
  }
  if (!text.empty()) out.line("* " + text);
}

}  // namespace

std::string http_status_text(const json::value& status_code) {
  if (!status_code.is_int64()) return "";
  const int status = static_cast<int>(status_code.get_int64());
  std::string text = "HTTP " + std::to_string(status);
  const std::string_view reason = http::reason_phrase(status);
  return reason.empty() ? text : text + " " + std::string(reason);
}

void print_endpoint(Invocation& in, const json::value& endpoint) {
  in.out().record(in.out().is_for_people() ? json::value(for_people(endpoint)) : endpoint, whole_layout());
}

void print_created_endpoint(Invocation& in, const json::value& endpoint) {
  print_only(in, endpoint, {"id", "url", "event_types", "status", "secret"});
}

void print_endpoint_status(Invocation& in, const json::value& endpoint) {
  print_only(in, endpoint, {"id", "url", "status", "status_reason", "status_since", "health", "pending"});
}

void print_exchange(Invocation& in, const json::value& exchange) {
  const Output& out = in.out();
  if (!out.is_for_people()) return out.record(exchange);
  const json::object& request = exchange.at("request").as_object();
  const std::string url = cell_text(request.at("url"));
  if (const auto& address = exchange.at("address"); !address.is_null())
    out.line("* Connected to " + host_of(url) + " (" + cell_text(address) + ")");
  out.line("> " + cell_text(request.at("method")) + " " + path_of(url) + " HTTP/1.1");
  out.line("> host: " + host_of(url));
  print_headers(out, "> ", request.if_contains("headers"));
  print_body(out, "> ", request.if_contains("body"));
  out.line("");
  if (const json::object* response = exchange.at("response").if_object()) {
    out.line("< " + http_status_text(response->at("status")));
    const json::value* headers = response->if_contains("headers");
    print_headers(out, "< ", headers);
    const bool has_type =
        response->contains("content_type") && cell_text(response->at("content_type")) != "-";
    if (headers == nullptr && has_type)
      out.line("< content-type: " + cell_text(response->at("content_type")));
    print_body(out, "< ", response->if_contains("preview"));
  }
  if (!exchange.at("error").is_null())
    out.line("* Error: " + cell_text(exchange.at("error_detail")) + " (" + cell_text(exchange.at("error")) +
             ")");
  print_timings(out, exchange);
  out.line(exchange.at("delivered").as_bool() ? "* Delivered" : "* NOT delivered");
}

void print_new_secret(Invocation& in, const json::value& response) {
  print_only(in, response, {"id", "secret", "created_at", "expires_at"});
  in.out().note("Save this secret now. It will not be shown again.");
}

}  // namespace postrider::cli
