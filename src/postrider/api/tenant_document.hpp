// Tenants as JSON: what callers send and what they get.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "postrider/api/problems.hpp"
#include "postrider/registry/tenants.hpp"

namespace postrider::api {

// Reads the fields that are there into the settings; unknown fields and bad values become problems. With
// `id`, the document must name the tenant.
void read_tenant(const boost::json::object& document, std::string* id, registry::TenantSettings& settings,
                 FieldProblems& problems);

std::string tenant_json(const registry::Tenant& tenant);

// {reason?}, of pause, resume and disable.
void read_reason(const boost::json::object& document, std::optional<std::string>& reason,
                 FieldProblems& problems);

}  // namespace postrider::api
