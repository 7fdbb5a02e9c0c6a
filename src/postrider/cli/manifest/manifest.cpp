#include "postrider/cli/manifest/manifest.hpp"

#include <boost/json/array.hpp>
#include <set>

namespace postrider::cli {

namespace {

namespace json = boost::json;

const json::object& as_object(const json::value& value, const std::string& what) {
  if (const auto* object = value.if_object()) return *object;
  throw ManifestError(what + " must be a mapping of names to values");
}

// A list of mappings; an empty section may be null.
const json::array& as_list(const json::value& value, const std::string& section) {
  static const json::array none;
  if (value.is_null()) return none;
  if (const auto* array = value.if_array()) return *array;
  throw ManifestError("`" + section + "` must be a list");
}

std::string place(const std::string& section, size_t index) {
  return "entry " + std::to_string(index + 1) + " of `" + section + "`";
}

std::string take_id(json::object& fields, std::string_view name, const std::string& where) {
  const auto* found = fields.if_contains(name);
  if (!found || !found->is_string() || found->get_string().empty())
    throw ManifestError(where + " needs `" + std::string(name) + "`, a text");
  std::string id(found->get_string());
  fields.erase(name);
  return id;
}

bool is_reference(std::string_view text) {
  return text.starts_with("env:") || text.starts_with("file:") || text.starts_with("exec:");
}

void check_secret(const json::object& fields, const std::string& where) {
  const auto* secret = fields.if_contains("secret");
  if (!secret) return;
  if (!secret->is_string() || !is_reference(secret->get_string()))
    throw ManifestError(
        "`secret` of " + where +
        " must be a reference such as env:NAME or file:/path; a manifest contains no secrets");
}

Entry read_entry(const json::value& value, std::string_view id_name, const std::string& section,
                 size_t index) {
  Entry entry;
  entry.fields = as_object(value, place(section, index));
  entry.id = take_id(entry.fields, id_name, place(section, index));
  check_secret(entry.fields, "`" + entry.id + "`");
  return entry;
}

void reject_repeated(std::set<std::string>& seen, const std::string& id, const std::string& section) {
  if (!seen.insert(id).second) throw ManifestError("`" + id + "` is in `" + section + "` twice");
}

std::vector<Entry> read_entries(const json::value& value, std::string_view id_name,
                                const std::string& section) {
  std::vector<Entry> entries;
  std::set<std::string> seen;
  for (const json::value& item : as_list(value, section)) {
    entries.push_back(read_entry(item, id_name, section, entries.size()));
    reject_repeated(seen, entries.back().id, section);
  }
  return entries;
}

std::vector<TenantEntry> read_tenants(const json::value& value) {
  std::vector<TenantEntry> tenants;
  std::set<std::string> seen;
  for (const json::value& item : as_list(value, "tenants")) {
    TenantEntry tenant{read_entry(item, "id", "tenants", tenants.size()), {}};
    reject_repeated(seen, tenant.id, "tenants");
    if (const auto* endpoints = tenant.fields.if_contains("endpoints")) {
      tenant.endpoints = read_entries(*endpoints, "id", "endpoints of " + tenant.id);
      tenant.fields.erase("endpoints");
    }
    tenants.push_back(std::move(tenant));
  }
  return tenants;
}

}  // namespace

Manifest parse_manifest(const json::value& document) {
  Manifest manifest;
  if (document.is_null()) return manifest;
  for (const auto& section : as_object(document, "the manifest")) {
    const std::string_view name = section.key();
    if (name == "event_types")
      manifest.event_types = read_entries(section.value(), "name", "event_types");
    else if (name == "tenants")
      manifest.tenants = read_tenants(section.value());
    else if (name == "sources")
      manifest.sources = read_entries(section.value(), "id", "sources");
    else if (name == "portal")
      manifest.portal = section.value().is_null() ? json::object() : as_object(section.value(), "`portal`");
    else
      throw ManifestError("`" + std::string(name) +
                          "` is not a section; the sections are event_types, tenants, sources and portal");
  }
  return manifest;
}

}  // namespace postrider::cli
