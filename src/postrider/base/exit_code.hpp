// The exit codes of the process. They are part of the contract: docs/command-line.md documents them.
#pragma once

namespace postrider::base {

enum ExitCode : int {
  done = 0,             // also after a clean stop
  failed = 1,           // the reason is the last line on stderr
  misused = 2,          // the command line or the configuration is invalid
  stopped_at_once = 3,  // a second signal: deliveries in flight are sent again after the next start
  rejected = 4,         // the server rejected the request: invalid fields, a conflict, or not allowed
  not_found = 5,        // the server does not have it
  unreachable = 6,      // no server can be reached, or it cannot respond now
};

}  // namespace postrider::base
