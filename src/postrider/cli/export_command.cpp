// `postrider export`: event types, tenants, endpoints, sources and portal settings as a manifest for `apply`.
#include <cstdio>

#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"
#include "postrider/cli/progress.hpp"

namespace postrider::cli {

namespace {

constexpr std::string_view kPageRows = "250";

// Fields of the API that a manifest does not have: state, counts, and decisions of the server.
constexpr std::string_view kTenantState[] = {"status",     "status_reason", "status_since",  "status_by",
                                             "created_at", "updated_at",    "endpoint_count"};
constexpr std::string_view kTypeState[] = {"created_at", "updated_at"};

// The writable fields of endpoints and sources, in the order of the manifest.
constexpr std::string_view kEndpointFields[] = {"url",
                                                "event_types",
                                                "description",
                                                "max_attempts",
                                                "timeout_ms",
                                                "give_up_seconds",
                                                "max_in_flight",
                                                "rate_per_second",
                                                "ordering",
                                                "retry_schedule",
                                                "on_rejected",
                                                "signature",
                                                "allow_networks",
                                                "metadata"};
constexpr std::string_view kSourceFields[] = {
    "provider",    "description",   "signature",   "tolerance_seconds", "idempotency_key",
    "deduplicate", "partition_key", "ordering",    "headers",           "body_bytes_max",
    "consume",     "forward",       "max_attempts"};

bool is_empty(const json::value& value) {
  return value.is_null() || (value.is_array() && value.get_array().empty()) ||
         (value.is_object() && value.get_object().empty());
}

template <class Fields>
json::object only(const json::object& document, std::string_view id, const Fields& fields) {
  json::object kept;
  kept[id] = document.at(id);
  for (const std::string_view field : fields)
    if (const auto* found = document.if_contains(field); found && !is_empty(*found)) kept[field] = *found;
  return kept;
}

template <class Fields>
json::object without(const json::object& document, const Fields& fields) {
  json::object kept;
  for (const auto& member : document) {
    const bool is_left_out =
        std::find(std::begin(fields), std::end(fields), member.key()) != std::end(fields);
    if (!is_left_out && !is_empty(member.value())) kept[member.key()] = member.value();
  }
  return kept;
}

class Exporter {
 public:
  explicit Exporter(Remote& server) : server_(server) {}

  json::object everything() {
    json::object manifest = {{"event_types", event_types()}, {"tenants", tenants()}, {"sources", sources()}};
    if (json::object settings = portal(); !settings.empty()) manifest["portal"] = std::move(settings);
    return manifest;
  }

  json::object one_tenant(const std::string& id) {
    json::array list;
    list.push_back(tenant(server_.get(Target("v1", "tenants", id)).as_object()));
    return {{"tenants", list}};
  }

  const std::vector<std::string>& with_headers() const { return with_headers_; }

 private:
  // Every item of a list, page by page.
  template <class Each>
  void each_of(const Target& list, const Each& each) {
    std::optional<std::string> cursor;
    do {
      Target target = list;
      target.with("limit", std::string(kPageRows)).with("cursor", cursor);
      const json::value page = server_.get(target);
      for (const json::value& item : page.at("data").as_array()) each(item.as_object());
      const auto* next = page.as_object().if_contains("next_cursor");
      cursor = next && next->is_string() ? std::optional(std::string(next->get_string())) : std::nullopt;
    } while (cursor);
  }

  json::array event_types() {
    json::array types;
    each_of(Target("v1", "event-types"), [&](const json::object& type) {
      const json::value whole =
          server_.get(Target("v1", "event-types", std::string(type.at("name").as_string())));
      types.push_back(without(whole.as_object(), kTypeState));
    });
    return types;
  }

  json::array tenants() {
    json::array tenants;
    Progress bar("tenants");
    each_of(Target("v1", "tenants"), [&](const json::object& each) {
      tenants.push_back(tenant(each));
      bar.update(tenants.size());
    });
    return tenants;
  }

  json::object tenant(const json::object& document) {
    json::object kept = without(document, kTenantState);
    const std::string id(document.at("id").as_string());
    if (auto* contacts = kept.if_contains("contacts"))
      for (json::value& contact : contacts->as_array())
        if (contact.is_object()) contact = json::value(contact.get_object()["address"]);
    json::array endpoints;
    each_of(Target("v1", "tenants", id, "endpoints"),
            [&](const json::object& each) { endpoints.push_back(endpoint(id, each)); });
    if (!endpoints.empty()) kept["endpoints"] = std::move(endpoints);
    return kept;
  }

  json::object endpoint(const std::string& tenant, const json::object& document) {
    json::object kept = only(document, "id", kEndpointFields);
    const std::string id(document.at("id").as_string());
    if (const auto* headers = document.if_contains("headers"); headers && !is_empty(*headers))
      with_headers_.push_back(tenant + "/" + id);
    const json::value secrets = server_.get(Target("v1", "tenants", tenant, "endpoints", id, "secrets"));
    for (const json::value& secret : secrets.at("data").as_array()) {
      const auto* reference = secret.as_object().if_contains("reference");
      if (secret.at("current").as_bool() && reference && reference->is_string()) kept["secret"] = *reference;
    }
    return kept;
  }

  json::array sources() {
    json::array sources;
    each_of(Target("v1", "sources"),
            [&](const json::object& source) { sources.push_back(only(source, "id", kSourceFields)); });
    return sources;
  }

  json::object portal() {
    try {
      return without(server_.get(Target("v1", "portal")).as_object(), kTypeState);
    } catch (const ServerProblem& problem) {
      if (problem.status != 404) throw;
      return {};
    }
  }

  Remote& server_;
  std::vector<std::string> with_headers_;
};

int export_manifest(Invocation& in) {
  Exporter exporter(in.server());
  const auto tenant = in.value("--tenant");
  const json::object manifest = tenant ? exporter.one_tenant(*tenant) : exporter.everything();
  if (in.as_json())
    in.out().json(manifest);
  else
    std::fputs(yaml_text(manifest).c_str(), stdout);
  for (const std::string& endpoint : exporter.with_headers())
    in.out().note("The custom headers of " + visible(endpoint) +
                  " are not exported: their values are secret.");
  return done;
}

}  // namespace

Command export_command() {
  return command("export", "Write event types, tenants, endpoints and sources as a manifest for `apply`",
                 {tenant_option()}, export_manifest)
      .example("postrider export > postrider.yaml")
      .example("postrider export --tenant acme");
}

}  // namespace postrider::cli
