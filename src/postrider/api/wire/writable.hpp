// The fields that a caller may write, and their maximum values. One list for all kinds of customers: keys
// with the role customer, tokens, and keys of other roles that are bound to a tenant.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <span>
#include <string_view>

#include "postrider/api/wire/problems.hpp"
#include "postrider/config/config.hpp"
#include "postrider/registry/keys.hpp"

namespace postrider::api {

enum class Written { tenant, endpoint, replay };

// Each includes those before it.
enum class Writer {
  customer,   // a key with the role customer, or a token
  bound_key,  // an operator's or admin's key that is bound to the tenant
  operators,  // not bound to a tenant
};
Writer writer_of(const registry::Principal& principal);

struct WritableField {
  Written object;
  std::string_view name;
  Writer writer = Writer::customer;  // the least that may write it
  int (*customer_max)(
      const config::Config&) = {};  // of a number, or of the members of an object; none: as for all
};
std::span<const WritableField> writable_fields();

// 403 for fields that are for others, 422 for values above a customer's maximum; no value if all may be
// written. Unknown fields and other errors are for the resource to report.
std::optional<http::Problem> check_writable(const registry::Principal& writer, Written object,
                                            const boost::json::object& document,
                                            const config::Config& config);

}  // namespace postrider::api
