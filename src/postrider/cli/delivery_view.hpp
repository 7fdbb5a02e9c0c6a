// Shows a delivery to people: each attempt, and the next step.
#pragma once

#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

// Below /v1/tenants/{tenant} with --tenant, otherwise over all tenants.
template <class... Segments>
Target below_tenant(const Invocation& in, const Segments&... segments) {
  if (const auto tenant = in.value("--tenant")) return Target("v1", "tenants", *tenant, segments...);
  return Target("v1", segments...);
}

// Adds `result` to a row: the HTTP status, or else the error.
void add_result(json::object& row);
void print_delivery(Invocation& in, const json::value& delivery);
void print_delivery_summary(Invocation& in, const json::value& delivery);

// "postrider delivery replay …", and why; empty if there is nothing to do.
std::string next_step(const json::object& delivery);

}  // namespace postrider::cli
