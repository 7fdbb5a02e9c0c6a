// The migrations that this binary knows, in order.
//
// With POSTRIDER_FAIL_POINTS, the file named by POSTRIDER_TEST_MIGRATION is one more, so that a test can run
// the next version of postrider next to this one. Older binaries run on its result.
#pragma once

#include <span>

#include "postrider/pg/migrate.hpp"

namespace postrider::server {

std::span<const pg::Migration> known_migrations();

}  // namespace postrider::server
