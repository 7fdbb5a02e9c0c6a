// Shared by the tests of nodes.
#pragma once

#include <string>

#include "postrider/model/ids.hpp"

namespace postrider::cluster {

inline std::string quoted(const base::Uuid& id) {
  return "'" + id.text() + "'";
}

inline model::NodeId node_number(uint8_t n) {
  model::NodeId node;
  node.uuid.bytes[0] = n;
  node.uuid.bytes[15] = 1;
  return node;
}

}  // namespace postrider::cluster
