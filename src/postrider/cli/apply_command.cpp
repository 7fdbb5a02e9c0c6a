// `postrider apply -f FILE`: makes what a manifest describes so, and nothing else.
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"
#include "postrider/cli/manifest/difference.hpp"
#include "postrider/cli/manifest/manifest.hpp"
#include "postrider/cli/progress.hpp"

namespace postrider::cli {

namespace {

constexpr size_t kShownValue = 60;

// One object of the manifest, and the request that applies it.
struct Step {
  std::string kind, id;
  Target target;
  json::object wanted;
  bool exists = false;
  std::vector<Change> changes = {};
  std::function<void(Remote&, const Step&)> apply = {};

  bool is_needed() const { return !exists || !changes.empty(); }
  const char* action() const { return !exists ? "create" : changes.empty() ? "unchanged" : "update"; }
};

std::optional<json::object> find(Remote& server, const Target& target) {
  try {
    return server.get(target).as_object();
  } catch (const ServerProblem& problem) {
    if (problem.status != 404) throw;
    return std::nullopt;
  }
}

json::object changed_fields(const Step& step) {
  json::object fields;
  for (const Change& change : step.changes) fields[change.field] = change.after;
  return fields;
}

void compare(Remote& server, Step& step) {
  const auto current = find(server, step.target);
  step.exists = current.has_value();
  if (!current) return;
  json::object comparable = *current;
  // Contacts are given as addresses and shown with their state.
  if (auto* contacts = comparable.if_contains("contacts"); contacts && contacts->is_array()) {
    for (json::value& contact : contacts->get_array())
      if (contact.is_object()) contact = json::value(contact.get_object()["address"]);
  }
  step.changes = difference(comparable, step.wanted);
}

Step event_type_step(const Entry& entry) {
  Step step{"event type", entry.id, Target("v1", "event-types", entry.id), entry.fields};
  // Replaced as a whole, so what the manifest leaves out is kept from the current document.
  step.apply = [](Remote& server, const Step& step) {
    json::object document = step.exists ? server.get(step.target).as_object() : json::object();
    for (const char* field : {"name", "created_at", "updated_at"}) document.erase(field);
    for (const auto& member : step.wanted) document[member.key()] = member.value();
    server.send("PUT", step.target, document);
  };
  return step;
}

// `secrets` gets the contact secret of each tenant that is given its first URL.
Step tenant_step(const TenantEntry& entry, json::object& secrets) {
  Step step{"tenant", entry.id, Target("v1", "tenants", entry.id), entry.fields};
  step.apply = [&secrets](Remote& server, const Step& step) {
    const json::value tenant = step.exists ? server.send("PATCH", step.target, changed_fields(step))
                                           : server.send("PUT", step.target, step.wanted);
    const auto* secret = tenant.as_object().if_contains("contact_secret");
    if (secret) secrets[step.id] = *secret;
  };
  return step;
}

std::optional<json::value> take(json::object& fields, std::string_view name) {
  const auto* found = fields.if_contains(name);
  if (!found) return std::nullopt;
  json::value value = *found;
  fields.erase(name);
  return value;
}

// The reference of the secret that signs now; null if it is not a reference.
json::value current_reference(Remote& server, const std::string& tenant, const std::string& endpoint) {
  const json::value secrets = server.get(Target("v1", "tenants", tenant, "endpoints", endpoint, "secrets"));
  for (const json::value& secret : secrets.at("data").as_array()) {
    const json::object& fields = secret.as_object();
    if (!fields.at("current").as_bool()) continue;
    const auto* reference = fields.if_contains("reference");
    return reference ? *reference : json::value();
  }
  return nullptr;
}

Step endpoint_step(const std::string& tenant, const Entry& entry) {
  Step step{"endpoint", tenant + "/" + entry.id, Target("v1", "tenants", tenant, "endpoints", entry.id),
            entry.fields};
  const Target rotation("v1", "tenants", tenant, "endpoints", entry.id, "secrets", "rotate");
  step.apply = [rotation](Remote& server, const Step& step) {
    if (!step.exists) {
      server.send("PUT", step.target, step.wanted);
      return;
    }
    json::object fields = changed_fields(step);
    const auto secret = take(fields, "secret");
    if (!fields.empty()) server.send("PATCH", step.target, fields);
    if (secret) server.send("POST", rotation, json::object{{"secret", *secret}});
  };
  return step;
}

void compare_endpoint(Remote& server, Step& step, const std::string& tenant, const std::string& endpoint) {
  const auto secret = take(step.wanted, "secret");
  compare(server, step);
  if (!secret) return;
  step.wanted["secret"] = *secret;
  if (!step.exists) return;
  const json::value before = current_reference(server, tenant, endpoint);
  if (before != *secret) step.changes.push_back({"secret", before, *secret});
}

// The text that `env:NAME` or `file:PATH` stands for on this machine. The server keeps references only for
// endpoints' secrets.
std::string resolved(const Invocation& in, const std::string& reference, const std::string& where) {
  if (reference.starts_with("file:")) return read_secret(reference.substr(5));
  if (!reference.starts_with("env:")) throw Misuse(where + " must be env:NAME or file:PATH");
  const auto found = in.environment().find(reference.substr(4));
  if (found == in.environment().end())
    throw Misuse(where + ": the variable " + reference.substr(4) + " is not set");
  return found->second;
}

void resolve_headers(const Invocation& in, Step& step) {
  auto* headers = step.wanted.if_contains("headers");
  if (!headers || !headers->is_object()) return;
  for (auto& member : headers->get_object()) {
    const auto* text = member.value().if_string();
    if (text && (text->starts_with("env:") || text->starts_with("file:")))
      member.value() = resolved(in, std::string(*text), step.id + ", header " + std::string(member.key()));
  }
}

// The secret of a source is only given when it is created: senders often cannot change theirs at once, so
// rotating it is a decision of its own.
Step source_step(const Entry& entry) {
  Step step{"source", entry.id, Target("v1", "sources", entry.id), entry.fields};
  step.apply = [](Remote& server, const Step& step) {
    if (step.exists) {
      server.send("PATCH", step.target, changed_fields(step));
      return;
    }
    json::object document = step.wanted;
    document["id"] = step.id;
    server.send("POST", Target("v1", "sources"), document);
  };
  return step;
}

void compare_source(Invocation& in, Step& step) {
  const auto secret = take(step.wanted, "secret");
  compare(in.server(), step);
  if (secret && !step.exists)
    step.wanted["secret"] = resolved(in, std::string(secret->as_string()), "`secret` of source " + step.id);
}

Step portal_step(const json::object& fields) {
  Step step{"portal", "settings", Target("v1", "portal"), fields};
  step.apply = [](Remote& server, const Step& step) {
    json::object document = step.exists ? server.get(step.target).as_object() : json::object();
    document.erase("updated_at");
    for (const auto& member : step.wanted) document[member.key()] = member.value();
    server.send("PUT", step.target, document);
  };
  return step;
}

size_t size_of(const Manifest& manifest) {
  size_t size = manifest.event_types.size() + manifest.sources.size() + (manifest.portal.empty() ? 0 : 1);
  for (const TenantEntry& tenant : manifest.tenants) size += 1 + tenant.endpoints.size();
  return size;
}

// In the order in which they are applied: an endpoint needs its tenant, a source may forward to one.
std::vector<Step> plan(Invocation& in, const Manifest& manifest, json::object& secrets) {
  Remote& server = in.server();
  std::vector<Step> steps;
  Progress bar("objects compared", size_of(manifest));
  const auto add = [&](Step step) {
    steps.push_back(std::move(step));
    bar.update(steps.size());
  };
  const auto compared = [&](Step step) {
    compare(server, step);
    return step;
  };
  for (const Entry& entry : manifest.event_types) add(compared(event_type_step(entry)));
  for (const TenantEntry& tenant : manifest.tenants) {
    add(compared(tenant_step(tenant, secrets)));
    for (const Entry& entry : tenant.endpoints) {
      Step step = endpoint_step(tenant.id, entry);
      resolve_headers(in, step);
      compare_endpoint(server, step, tenant.id, entry.id);
      add(std::move(step));
    }
  }
  for (const Entry& entry : manifest.sources) {
    Step step = source_step(entry);
    compare_source(in, step);
    add(std::move(step));
  }
  if (!manifest.portal.empty()) add(compared(portal_step(manifest.portal)));
  bar.finish();
  return steps;
}

std::string shown(const json::value& value) {
  return shortened(visible(value.is_string() ? std::string(value.get_string()) : json::serialize(value)),
                   kShownValue);
}

void print(const Output& out, const Step& step) {
  if (!out.is_for_people() || !step.is_needed()) return;
  out.line(std::string(step.exists ? "~ " : "+ ") + step.kind + " " + visible(step.id));
  for (const Change& change : step.changes)
    out.line("    " + change.field + ": " + shown(change.before) + " → " + shown(change.after));
}

json::object summary(const std::vector<Step>& steps, bool is_dry_run) {
  json::array changes;
  std::map<std::string_view, int64_t> counts;
  for (const Step& step : steps) {
    ++counts[step.action()];
    if (!step.is_needed()) continue;
    json::array fields;
    for (const Change& change : step.changes)
      fields.push_back({{"field", change.field}, {"before", change.before}, {"after", change.after}});
    changes.push_back({{"kind", step.kind}, {"id", step.id}, {"action", step.action()}, {"fields", fields}});
  }
  return {{"changes", changes},
          {"created", counts["create"]},
          {"updated", counts["update"]},
          {"unchanged", counts["unchanged"]},
          {"dry_run", is_dry_run}};
}

std::string sentence(const json::object& summary) {
  const auto count = [&](const char* name) { return std::to_string(summary.at(name).as_int64()); };
  return std::string(summary.at("dry_run").as_bool() ? "Dry run: would create " : "Created ") +
         count("created") + (summary.at("dry_run").as_bool() ? ", update " : ", updated ") +
         count("updated") + "; " + count("unchanged") + " unchanged.";
}

Manifest read_manifest(const std::string& path) {
  try {
    return parse_manifest(parse_yaml(read_text(path)));
  } catch (const ManifestError& error) {
    throw Misuse((path == "-" ? "The manifest" : path) + " is invalid: " + error.what());
  }
}

// Changes before a failure are kept. Applying the corrected manifest again makes the others.
void apply_step(Remote& server, const Step& step) {
  try {
    step.apply(server, step);
  } catch (const ServerProblem& problem) {
    const std::string detail = step.kind + " " + step.id + ": " + problem.what();
    json::value document = problem.document;
    if (document.is_object()) document.get_object()["detail"] = detail;
    throw ServerProblem(problem.status, detail, std::move(document));
  }
}

int apply(Invocation& in) {
  const Manifest manifest = read_manifest(in.value("--file").value());
  const bool is_dry_run = in.has("--dry-run");
  json::object secrets;
  const std::vector<Step> steps = plan(in, manifest, secrets);
  for (const Step& step : steps) {
    print(in.out(), step);
    if (!is_dry_run && step.is_needed()) apply_step(in.server(), step);
  }
  json::object result = summary(steps, is_dry_run);
  if (!secrets.empty()) result["contact_secrets"] = secrets;
  if (in.out().is_for_people())
    for (const auto& secret : secrets)
      in.out().line("contact secret of tenant " + visible(secret.key()) +
                    ", shown only now: " + std::string(secret.value().as_string()));
  if (!in.out().is_for_people()) in.out().record(result);
  in.out().note(sentence(result));
  return done;
}

}  // namespace

Command apply_command() {
  return command("apply", "Create and update what a manifest describes (YAML or JSON)",
                 {required(with_short(option("--file", "FILE", "The manifest (- for standard input)"), "-f")),
                  flag("--dry-run", "Only show what would change")},
                 apply)
      .example("postrider apply -f postrider.yaml --dry-run")
      .example("postrider apply -f postrider.yaml");
}

}  // namespace postrider::cli
