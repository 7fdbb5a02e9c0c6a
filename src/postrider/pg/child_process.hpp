// Starts other programs (initdb, postgres) in isolation: as another user if needed, with exactly the given
// environment, in a session of their own, and without postrider's descriptors. Blocking; any thread.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace postrider::pg {

struct User {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string name;

  static User current();
  static std::optional<User> by_name(const std::string& name);
  static std::optional<User> by_uid(uid_t uid);
};

// A path to the child's `directory` that works even if the child's user cannot reach it from the root: a
// process can always use its own descriptors.
inline constexpr const char* child_directory = "/proc/self/fd/4";

struct ChildOptions {
  std::vector<std::string> arguments;      // the first is the program's path
  std::vector<std::string> environment{};  // all of it, "NAME=value"
  std::string directory{};                 // working directory, also open as descriptor 4
  std::optional<User> user{};              // needs root
  std::string input{};                     // what the child reads on stdin; empty: nothing
  int input_fd = -1;                       // instead of `input`
  std::string output_file{};               // stdout and stderr are appended; empty: dropped
};

// Throws std::system_error when the program cannot be run. The caller reaps the child.
pid_t start_child(const ChildOptions& options);

struct Finished {
  int exit_code = 0;   // 128 + signal when it was killed
  std::string output;  // stdout and stderr together
};
// Starts and waits; output_file is not used.
Finished run_child(const ChildOptions& options);

// True if `user` can enter the directory. Checked by a process of that user (needs root for another user).
bool can_enter(const User& user, const std::string& directory);

}  // namespace postrider::pg
