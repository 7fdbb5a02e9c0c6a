// What is said about an outbox whose tables are not as `postrider outbox install` made them. Their owner may
// have emptied or altered them; a dump without data does the same.
#pragma once

#include <string>

#include "postrider/pg/error.hpp"

namespace postrider::outbox {

inline pg::Error missing_row(const std::string& table) {
  return pg::Error(pg::Kind::other, table +
                                        " lacks its row: `postrider outbox install` puts it back (in "
                                        "postrider's own database see docs/outbox.md)");
}

}  // namespace postrider::outbox
