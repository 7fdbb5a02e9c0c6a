// Keeps secrets out of core dumps.
#pragma once

namespace postrider::server {

// The process holds the master key, opened secrets and API keys. From here on it leaves no core dump, and
// other processes of its user cannot read its memory. Children, such as the private Postgres, leave none
// either.
void forbid_core_dumps();

}  // namespace postrider::server
