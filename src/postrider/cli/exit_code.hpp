// What the process says to its caller when it ends. Part of the contract: documented in docs/command-line.md.
#pragma once

namespace postrider::cli {

enum ExitCode : int {
  done = 0,             // also after a clean stop
  failed = 1,           // the reason is the last line on stderr
  misused = 2,          // command line or configuration cannot be understood
  stopped_at_once = 3,  // a second signal: what was in flight is sent again at the next start
  refused = 4,          // the server said no: wrong fields, conflict, not allowed
  not_found = 5,        // the server does not know it
  unreachable = 6,      // no server there, or it cannot answer now
};

}  // namespace postrider::cli
