// The changes that a manifest makes to an existing object. Fields that it leaves out stay unchanged.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

namespace postrider::cli {

struct Change {
  std::string field;
  boost::json::value before, after;
};

// `current` is the API's document. A list of texts is compared as a set, because the API does not keep the
// order of subscriptions; a masked value (`***`) counts as equal, because it cannot be compared.
std::vector<Change> difference(const boost::json::object& current, const boost::json::object& wanted);

}  // namespace postrider::cli
