// Tenants as JSON, in requests and responses.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "postrider/api/wire/problems.hpp"
#include "postrider/config/config.hpp"
#include "postrider/http/client/blocked_destination.hpp"
#include "postrider/registry/tenants.hpp"

namespace postrider::api {

struct TenantRules {
  // A lane always holds at least one body, so a larger body would make its limit meaningless.
  int32_t payload_bytes_max;

  static TenantRules of(const config::Config& config);
};

// Reads the fields that are there into the settings; unknown fields and bad values become problems. With
// `id`, the document must name the tenant.
void read_tenant(const boost::json::object& document, std::string* id, const TenantRules& rules,
                 registry::TenantSettings& settings, FieldProblems& problems);

std::string tenant_json(const registry::Tenant& tenant, http::Audience audience);

// {reason?}, of pause, resume and disable.
void read_reason(const boost::json::object& document, std::optional<std::string>& reason,
                 FieldProblems& problems);

}  // namespace postrider::api
