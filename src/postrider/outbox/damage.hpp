// Errors about an outbox whose tables are not as `postrider outbox install` created them. Their owner may
// have emptied or altered them; a dump without data does the same.
#pragma once

#include <string>

#include "postrider/pg/error.hpp"

namespace postrider::outbox {

inline pg::Error missing_row(const std::string& table) {
  return pg::Error(pg::Kind::other, "no row in " + table +
                                        ": `postrider outbox install` restores it (in postrider's own "
                                        "database see docs/outbox.md)");
}

}  // namespace postrider::outbox
