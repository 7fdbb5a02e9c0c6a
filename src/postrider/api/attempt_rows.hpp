// An attempt as people see it.
#pragma once

#include <optional>
#include <string>

#include "postrider/api/json_writer.hpp"
#include "postrider/pg/rows.hpp"
#include "postrider/registry/keys.hpp"

namespace postrider::api {

// From the first columns of attempts_of and attempts_of_keys. What an endpoint answered may repeat what it
// was sent: it is for those who may see payloads.
JsonObject attempt_json(const pg::Rows& rows, size_t row, const registry::Principal& reader);

// Why a destination is refused says something about the network postrider is in: not to customers.
std::optional<std::string> shown_error_detail(const registry::Principal& reader,
                                              const std::optional<std::string>& error,
                                              std::optional<std::string> detail);

}  // namespace postrider::api
