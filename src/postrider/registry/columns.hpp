// Private to registry/: small conversions between columns and types.
#pragma once

#include <optional>
#include <string>

#include "postrider/pg/codec.hpp"
#include "postrider/pg/error.hpp"

namespace postrider::registry {

// A word read from a column whose constraint keeps to those that are known. Throws pg::Error when the
// constraint is gone or a later version's.
template <class T>
T known(std::optional<T> parsed) {
  if (!parsed) throw pg::Error(pg::Kind::other, "a column has a value that this version does not know");
  return *parsed;
}

inline std::optional<pg::Json> json_column(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  return pg::Json{*text};
}

// True if two documents are equal as JSON. Their text may differ: jsonb reorders keys and changes spaces.
bool is_same_json(const std::optional<std::string>& a, const std::optional<std::string>& b);

}  // namespace postrider::registry
