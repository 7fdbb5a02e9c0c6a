#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "postrider/config/load.hpp"
#include "postrider/config/values.hpp"

namespace postrider::config {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t output_bytes_max = 4096;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(number_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }

 private:
  int number_;
};

// The child leads a process group of its own, so that what the shell started dies with it.
pid_t start_shell(const std::string& command, int output) {
  const pid_t child = fork();
  if (child != 0) return child;
  setpgid(0, 0);
  dup2(output, STDOUT_FILENO);
  execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
  _exit(127);
}

// Reads to the end. False if that was not reached in time or within the limit.
bool read_all(int descriptor, Clock::time_point deadline, std::string& out) {
  char buffer[1024];
  while (out.size() <= output_bytes_max) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    pollfd entry{.fd = descriptor, .events = POLLIN, .revents = 0};
    const int ready = poll(&entry, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    const ssize_t got = read(descriptor, buffer, sizeof buffer);
    if (got == 0) return true;
    if (got > 0) out.append(buffer, static_cast<size_t>(got));
    if (got < 0 && errno != EINTR) return false;
  }
  return false;
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::string run(const std::string& command, std::chrono::milliseconds timeout) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw ConfigError(
        fmt::format("The command of master_key_command cannot be started: {}.", std::strerror(errno)));
  const Descriptor output(ends[0]);
  pid_t child = -1;
  {
    const Descriptor input(ends[1]);
    child = start_shell(command, input.get());
  }
  if (child < 0) throw ConfigError("The command of master_key_command cannot be started.");
  setpgid(child, child);  // in both, whoever is first

  std::string printed;
  const bool is_done = read_all(output.get(), Clock::now() + timeout, printed);
  if (!is_done) kill(-child, SIGKILL);
  const int status = wait_for(child);
  if (!is_done)
    throw ConfigError(
        fmt::format("The command of master_key_command did not finish within {} ms, or printed too much.",
                    timeout.count()));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw ConfigError(fmt::format("The command of master_key_command failed ({} {}).",
                                  WIFEXITED(status) ? "exit code" : "signal",
                                  WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status)));
  return printed;
}

}  // namespace

std::optional<std::string> resolve_master_key(const Config& config, std::chrono::milliseconds timeout) {
  if (!config.master_key.empty()) return config.master_key;
  if (config.master_key_command.empty()) return std::nullopt;
  const std::string printed = run(config.master_key_command, timeout);
  const std::string_view key = trimmed(printed);
  if (key.empty()) throw ConfigError("The command of master_key_command printed nothing.");
  return std::string(key);
}

}  // namespace postrider::config
