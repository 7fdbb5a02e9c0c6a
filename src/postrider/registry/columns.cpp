#include "postrider/registry/columns.hpp"

#include <boost/json.hpp>

namespace postrider::registry {

bool is_same_json(const std::optional<std::string>& a, const std::optional<std::string>& b) {
  if (a == b) return true;
  if (!a || !b) return false;
  return boost::json::parse(*a) == boost::json::parse(*b);
}

}  // namespace postrider::registry
