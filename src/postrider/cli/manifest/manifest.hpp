// A manifest: event types, tenants, endpoints, sources and portal settings in one YAML or JSON file, as
// `postrider apply` reads it and `postrider export` writes it. Each entry has the fields of the API.
#pragma once

#include <boost/json/object.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace postrider::cli {

struct ManifestError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Entry {
  std::string id;
  boost::json::object fields;  // without the ID
};

struct TenantEntry : Entry {
  std::vector<Entry> endpoints;
};

struct Manifest {
  std::vector<Entry> event_types;
  std::vector<TenantEntry> tenants;
  std::vector<Entry> sources;
  boost::json::object portal;
};

// Values are typed as in YAML 1.2 (core schema). Throws ManifestError with the line if it is not YAML, and if
// a key is repeated.
boost::json::value parse_yaml(const std::string& text);

// Throws ManifestError for unknown sections, entries without an ID, repeated IDs, and secrets that are
// written out: a manifest is kept in version control, so it only refers to secrets.
Manifest parse_manifest(const boost::json::value& document);

}  // namespace postrider::cli
