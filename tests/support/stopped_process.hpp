// Another process that stands still, as a server that hangs: its connections stay open, and what is sent to
// it waits in their buffers.
#pragma once

#include <csignal>

#include "postrider/base/check.hpp"

namespace postrider::support {

class StoppedProcess {
 public:
  explicit StoppedProcess(int pid) : pid_(pid) { CHECK(pid > 1 && ::kill(pid, SIGSTOP) == 0); }
  ~StoppedProcess() { resume(); }
  StoppedProcess(const StoppedProcess&) = delete;
  StoppedProcess& operator=(const StoppedProcess&) = delete;

  void resume() {
    if (pid_ != 0) ::kill(pid_, SIGCONT);
    pid_ = 0;
  }

 private:
  int pid_;
};

}  // namespace postrider::support
