#pragma once

#include <optional>
#include <string>

namespace postrider::pg {

// A connection string that is safe to display: user, host, port and database, never a password, key or other
// option. Nothing when libpq cannot read it.
std::optional<std::string> display_url(const std::string& url);

}  // namespace postrider::pg
