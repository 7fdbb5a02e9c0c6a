#include "postrider/api/wire/writable.hpp"

#include <string>
#include <utility>

#include "postrider/base/number_text.hpp"

namespace postrider::api {

namespace {

using config::Config;
using enum Written;

constexpr WritableField kFields[] = {
    {tenant, "name"},
    {tenant, "contacts"},
    {tenant, "metadata", Writer::bound_key},
    {tenant, "max_in_flight", Writer::operators},
    {tenant, "rate_per_second", Writer::operators},
    {tenant, "publish_rate_per_second", Writer::operators},
    {tenant, "payload_bytes_max", Writer::operators},
    {tenant, "endpoints_max", Writer::operators},
    {tenant, "allow_networks", Writer::operators},

    {endpoint, "url"},
    {endpoint, "event_types"},
    {endpoint, "description"},
    {endpoint, "max_attempts"},
    {endpoint, "timeout_ms", Writer::customer, [](const Config& c) { return c.customer_timeout_ms; }},
    {endpoint, "give_up_seconds"},
    {endpoint, "max_in_flight", Writer::customer, [](const Config& c) { return c.customer_max_in_flight; }},
    {endpoint, "rate_per_second", Writer::customer,
     [](const Config& c) { return c.customer_rate_per_second; }},
    {endpoint, "ordering"},
    {endpoint, "retry_schedule"},
    {endpoint, "on_rejected"},
    {endpoint, "headers", Writer::customer, [](const Config& c) { return c.custom_headers_max; }},
    {endpoint, "signature"},
    {endpoint, "secret"},
    {endpoint, "allow_networks", Writer::operators},
    {endpoint, "metadata"},

    {replay, "rate_per_second", Writer::customer,
     [](const Config& c) { return c.customer_replay_rate_per_second; }},
};

// Not a number or an object: the resource reports it.
bool is_above(const boost::json::value& value, int max) {
  if (const auto* object = value.if_object()) return object->size() > static_cast<size_t>(max);
  if (const auto* number = value.if_int64()) return *number > max;
  if (value.is_uint64()) return true;  // more than an int64 holds
  if (const auto* number = value.if_double()) return *number > max;
  return false;
}

}  // namespace

Writer writer_of(const registry::Principal& principal) {
  if (principal.is_customer()) return Writer::customer;
  return principal.is_bound() ? Writer::bound_key : Writer::operators;
}

std::span<const WritableField> writable_fields() {
  return kFields;
}

std::optional<http::Problem> check_writable(const registry::Principal& principal, Written object,
                                            const boost::json::object& document,
                                            const config::Config& config) {
  const Writer writer = writer_of(principal);
  FieldProblems forbidden_fields, too_large;
  for (const WritableField& field : kFields) {
    const auto* value = field.object == object ? document.if_contains(field.name) : nullptr;
    if (!value) continue;
    const std::string pointer = "/" + std::string(field.name);
    if (writer < field.writer) forbidden_fields.push_back({pointer, "can be changed only by operators"});
    const int max = writer == Writer::customer && field.customer_max ? field.customer_max(config) : 0;
    if (max > 0 && is_above(*value, max))
      too_large.push_back({pointer, "must be at most " + base::grouped(static_cast<size_t>(max)) +
                                        ", the limit for customers"});
  }
  if (!forbidden_fields.empty()) return operators_only(std::move(forbidden_fields));
  if (!too_large.empty()) return invalid(std::move(too_large));
  return std::nullopt;
}

}  // namespace postrider::api
