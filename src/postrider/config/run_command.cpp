#include "postrider/config/run_command.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace postrider::config {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kOutputBytesMax = 4096;
constexpr std::string_view kOwnPrefix = "POSTRIDER_";

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

// Null-terminated, as execve requires. Made before the fork: in the child nothing may allocate.
std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> environment_without_own() {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!std::string_view(*entry).starts_with(kOwnPrefix)) all.emplace_back(*entry);
  return all;
}

pid_t start(const std::vector<std::string>& arguments, int output) {
  const std::vector<std::string> environment = environment_without_own();
  const std::vector<char*> argv = pointers(arguments), envp = pointers(environment);
  const pid_t child = fork();
  if (child != 0) return child;
  setpgid(0, 0);
  dup2(output, STDOUT_FILENO);
  execve(argv[0], argv.data(), envp.data());
  _exit(127);
}

// Reads to the end. False if that was not reached in time or within the limit.
bool read_all(int descriptor, Clock::time_point deadline, std::string& out) {
  char buffer[1024];
  while (out.size() <= kOutputBytesMax) {
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

}  // namespace

base::Result<std::string, std::string> run_command(const std::vector<std::string>& arguments,
                                                   std::chrono::milliseconds timeout) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return base::Failure{fmt::format("cannot be started: {}", std::strerror(errno))};
  const Descriptor output(ends[0]);
  pid_t child = -1;
  {
    const Descriptor input(ends[1]);
    child = start(arguments, input.get());
  }
  if (child < 0) return base::Failure{std::string("cannot be started")};
  setpgid(child, child);  // in both processes, because either may run first

  std::string printed;
  const bool is_done = read_all(output.get(), Clock::now() + timeout, printed);
  if (!is_done) kill(-child, SIGKILL);
  const int status = wait_for(child);
  if (!is_done)
    return base::Failure{fmt::format("did not finish within {} ms, or printed too much", timeout.count())};
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return base::Failure{fmt::format("failed ({} {})", WIFEXITED(status) ? "exit code" : "signal",
                                     WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status))};
  return printed;
}

}  // namespace postrider::config
