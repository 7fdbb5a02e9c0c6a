// `postrider verify` and `trigger`: for developers of receivers.
#include <algorithm>
#include <boost/json/serialize.hpp>
#include <chrono>

#include "postrider/base/time.hpp"
#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"
#include "postrider/cli/verify.hpp"

namespace postrider::cli {

namespace {

// "Name: value" lines, as curl -i and many logs print them.
void add_header(std::map<std::string, std::string>& headers, std::string_view line) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos)
    throw Misuse("Invalid header \"" + std::string(line) + "\": expected \"name: value\".");
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  std::string_view value = line.substr(colon + 1);
  while (value.starts_with(' ')) value.remove_prefix(1);
  while (value.ends_with('\r') || value.ends_with(' ')) value.remove_suffix(1);
  headers[name] = std::string(value);
}

int verify(Invocation& in) {
  SignedRequest request;
  for (const std::string& line : in.values("--header")) add_header(request.headers, line);
  if (const auto path = in.value("--headers")) {
    const std::string text = read_text(*path);
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      const std::string line = text.substr(at, end - at);
      if (line.find(": ") != std::string::npos) add_header(request.headers, line);
      at = end + 1;
    }
  }
  request.body = read_text(in.argument("body"));
  // Not an option: a secret on the command line is visible in the process list.
  const auto file = in.value("--secret-file");
  const auto variable = in.environment().find("POSTRIDER_SECRET");
  if (file)
    request.secret = read_text(*file);
  else if (variable != in.environment().end())
    request.secret = variable->second;
  else
    throw Misuse("The secret is missing: give --secret-file FILE, or set POSTRIDER_SECRET.");
  while (request.secret.ends_with('\n') || request.secret.ends_with('\r')) request.secret.pop_back();
  if (const auto name = in.value("--scheme")) {
    request.scheme = crypto::parse_signature_scheme(*name);
    if (!request.scheme) request.provider = *name;
  }
  request.tolerance_seconds = std::chrono::duration_cast<std::chrono::seconds>(
                                  in.duration("--tolerance").value_or(std::chrono::minutes(5)))
                                  .count();
  request.now = std::chrono::duration_cast<std::chrono::seconds>(base::wall_now().time_since_epoch()).count();

  const SignatureReport report = verify_signature(request);
  if (!in.out().is_for_people()) {
    json::array findings;
    for (const std::string& finding : report.findings) findings.emplace_back(finding);
    in.out().json(
        json::object{{"valid", report.is_valid}, {"scheme", report.scheme}, {"findings", findings}});
  } else {
    in.out().line((report.is_valid ? "Valid signature (scheme: " : "Invalid signature (scheme: ") +
                  report.scheme + ")");
    for (const std::string& finding : report.findings) in.out().line("  " + visible(finding));
  }
  return report.is_valid ? done : failed;
}

// The example of a type in the catalogue; null if there is none.
json::value example_of(Invocation& in, const std::string& type) {
  json::value known;
  try {
    known = in.server().get(Target("v1", "event-types", type));
  } catch (const ServerProblem& problem) {
    if (problem.status != 404) throw;
    return nullptr;
  }
  const json::object& document = known.as_object();
  const json::value* versions = document.if_contains("versions");
  if (versions == nullptr || !versions->is_array()) return nullptr;
  const auto wanted = in.value("--version");
  json::value found = nullptr;
  for (const json::value& each : versions->as_array()) {
    const json::object& version = each.as_object();
    const json::value* name = version.if_contains("version");
    const json::value* example = version.if_contains("example");
    if (example == nullptr || example->is_null()) continue;
    if (wanted && (name == nullptr || !name->is_string() || name->as_string() != *wanted)) continue;
    found = *example;  // the last one is the newest
  }
  return found;
}

int trigger(Invocation& in) {
  const std::string type = in.argument("type");
  json::value data = example_of(in, type);
  if (data.is_null()) {
    in.out().note("The catalogue has no example of " + visible(type) + "; sending a sample.");
    data = json::object{{"sample", true}, {"type", type}, {"sent_at", base::to_rfc3339(base::wall_now())}};
  }
  json::object body{{"type", type}, {"data", std::move(data)}};
  if (const auto version = in.value("--version")) body["version"] = *version;
  if (const auto subject = in.value("--subject")) body["subject"] = *subject;
  const json::value response =
      in.server().send("POST", Target("v1", "tenants", in.argument("tenant"), "events"), body);
  in.out().record(response);
  in.out().note("See its deliveries: postrider event show " + in.argument("tenant") + " " +
                cell_text(response.at("id")));
  return done;
}

}  // namespace

Command verify_command() {
  return command(
             "verify", "Check the signature of a webhook, and find out why it does not match",
             join({argument("body", "File with the body exactly as received (- for standard input)"),
                   list_option("--header", "LINE", "A header, such as \"webhook-id: evt_…\" (repeatable)"),
                   option("--headers", "FILE", "File with all headers, one per line"),
                   option("--secret-file", "FILE",
                          "File with the secret or the public key (or set POSTRIDER_SECRET)"),
                   choice("--scheme",
                          {"standard", "standard-ed25519", "hex-v1", "sha256", "stripe", "github", "shopify",
                           "slack", "svix"},
                          "Signature scheme (default: detected from the headers)"),
                   option("--tolerance", "DURATION", "Maximum age of the timestamp (default: 5m)")},
                  output_options()),
             verify, Needs::nothing)
      .example("postrider verify body.json --headers headers.txt --secret-file secret.txt");
}

Command trigger_command() {
  return command("trigger", "Publish the catalogue's example of an event type, or a sample event",
                 {argument("tenant", "Tenant ID"), argument("type", "Event type, such as invoice.paid"),
                  option("--version", "VERSION", "Version of the type"),
                  option("--subject", "SUBJECT", "Subject of the event")},
                 trigger)
      .example("postrider trigger acme invoice.paid");
}

}  // namespace postrider::cli
