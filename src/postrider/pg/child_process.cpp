#include "postrider/pg/child_process.hpp"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "postrider/base/check.hpp"

namespace postrider::pg {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::pair<Descriptor, Descriptor> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

Descriptor open_input(const std::string& text) {
  if (text.empty()) return Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  Descriptor file(::memfd_create("input", MFD_CLOEXEC));
  if (file.get() < 0 || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::lseek(file.get(), 0, SEEK_SET) != 0)
    fail("memfd_create");
  return file;
}

// argv and envp for execve; the strings stay where they are.
std::vector<char*> c_strings(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<gid_t> groups_of(const User& user) {
  int count = 64;
  std::vector<gid_t> groups(static_cast<size_t>(count));
  while (::getgrouplist(user.name.c_str(), user.gid, groups.data(), &count) < 0)
    groups.resize(static_cast<size_t>(count));
  groups.resize(static_cast<size_t>(count));
  return groups;
}

// Everything the child needs, made before the fork: after it only async-signal-safe calls are allowed.
struct Prepared {
  std::vector<char*> arguments;
  std::vector<char*> environment;
  int directory;     // -1: stay
  const User* user;  // null: stay
  std::vector<gid_t> groups;
  int input;
  int output;
  int report;  // gets errno when something fails; closed by a successful execve
};

[[noreturn]] void become(const Prepared& child) {
  ::setsid();
  ::umask(077);
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // All sources are above 4 (see raised()), so that none is overwritten before it is used.
  const bool ready =
      ::dup2(child.input, 0) == 0 && ::dup2(child.output, 1) == 1 && ::dup2(child.output, 2) == 2 &&
      ::dup3(child.report, 3, O_CLOEXEC) == 3 &&
      (child.directory < 0 || (::dup2(child.directory, 4) == 4 && ::fchdir(4) == 0)) &&
      ::close_range(child.directory < 0 ? 4 : 5, ~0U, 0) == 0 &&
      (child.user == nullptr || (::setgroups(child.groups.size(), child.groups.data()) == 0 &&
                                 ::setgid(child.user->gid) == 0 && ::setuid(child.user->uid) == 0));
  if (ready) ::execve(child.arguments[0], child.arguments.data(), child.environment.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(3, &error, sizeof error);
  ::_exit(127);
}

// Moves a descriptor above 4, where become() does not overwrite it before it is used.
Descriptor raised(Descriptor fd) {
  if (fd.get() > 4) return fd;
  if (fd.get() < 0) return fd;
  Descriptor copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 10));
  if (copy.get() < 0) fail("fcntl");
  return copy;
}

pid_t start(const ChildOptions& options, int output) {
  CHECK(!options.arguments.empty());
  auto [report_read, report_write] = make_pipe();
  report_write = raised(std::move(report_write));
  const Descriptor input = options.input_fd >= 0 ? Descriptor(::fcntl(options.input_fd, F_DUPFD_CLOEXEC, 10))
                                                 : raised(open_input(options.input));
  Descriptor directory;
  if (!options.directory.empty()) {
    directory = raised(Descriptor(::open(options.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
    if (directory.get() < 0) fail("cannot enter " + options.directory);
  }
  Prepared child{.arguments = c_strings(options.arguments),
                 .environment = c_strings(options.environment),
                 .directory = directory.get(),
                 .user = options.user ? &*options.user : nullptr,
                 .groups = options.user ? groups_of(*options.user) : std::vector<gid_t>(),
                 .input = input.get(),
                 .output = output,
                 .report = report_write.get()};
  const pid_t pid = ::fork();
  if (pid < 0) fail("fork");
  if (pid == 0) become(child);

  report_write = Descriptor();
  int error = 0;
  ssize_t got = 0;
  do {
    got = ::read(report_read.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  if (got == sizeof error) {
    ::waitpid(pid, nullptr, 0);
    throw std::system_error(error, std::generic_category(), "cannot run " + options.arguments[0]);
  }
  return pid;
}

std::optional<User> user_of(const passwd* entry) {
  if (entry == nullptr) return std::nullopt;
  return User{.uid = entry->pw_uid, .gid = entry->pw_gid, .name = entry->pw_name};
}

}  // namespace

User User::current() {
  return by_uid(::geteuid()).value_or(User{.uid = ::geteuid(), .gid = ::getegid(), .name = ""});
}

std::optional<User> User::by_name(const std::string& name) {
  return user_of(::getpwnam(name.c_str()));
}

std::optional<User> User::by_uid(uid_t uid) {
  return user_of(::getpwuid(uid));
}

pid_t start_child(const ChildOptions& options) {
  const std::string& file = options.output_file.empty() ? "/dev/null" : options.output_file;
  const Descriptor output =
      raised(Descriptor(::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)));
  if (output.get() < 0) fail("cannot write " + file);
  return start(options, output.get());
}

Finished run_child(const ChildOptions& options) {
  auto [read_end, write_end] = make_pipe();
  write_end = raised(std::move(write_end));
  const pid_t pid = start(options, write_end.get());
  write_end = Descriptor();

  Finished finished;
  std::array<char, 4096> buffer{};
  while (true) {
    const ssize_t got = ::read(read_end.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    finished.output.append(buffer.data(), static_cast<size_t>(got));
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  finished.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return finished;
}

bool can_enter(const User& user, const std::string& directory) {
  if (user.uid == ::geteuid()) return ::access(directory.c_str(), X_OK) == 0;
  const std::vector<gid_t> groups = groups_of(user);
  const pid_t pid = ::fork();
  if (pid < 0) fail("fork");
  if (pid == 0) {
    const bool entered = ::setgroups(groups.size(), groups.data()) == 0 && ::setgid(user.gid) == 0 &&
                         ::setuid(user.uid) == 0 && ::access(directory.c_str(), X_OK) == 0;
    ::_exit(entered ? 0 : 1);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace postrider::pg
