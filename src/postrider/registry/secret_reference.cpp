#include "postrider/registry/secret_reference.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "postrider/config/run_command.hpp"

namespace postrider::registry {

namespace {

using Resolved = base::Result<std::string, std::string>;

constexpr std::string_view kFile = "file:", kEnvironment = "env:", kProgram = "exec:";
constexpr std::string_view kOwnPrefix = "POSTRIDER_";
constexpr size_t kSecretBytesMax = 4096;
constexpr size_t kArgumentMax = 200;

bool is_plain(std::string_view text, std::string_view also) {
  return std::all_of(text.begin(), text.end(), [also](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           also.find(c) != std::string_view::npos;
  });
}

bool is_below(std::string_view path, std::string directory) {
  while (directory.ends_with('/')) directory.pop_back();
  return path.size() > directory.size() + 1 && path.starts_with(directory) && path[directory.size()] == '/';
}

bool is_below_any(std::string_view path, const std::vector<std::string>& directories) {
  return std::any_of(directories.begin(), directories.end(),
                     [path](const std::string& directory) { return is_below(path, directory); });
}

std::optional<std::string> why_not_file(const ReferencePolicy& policy, std::string_view path) {
  if (policy.directories.empty())
    return "is a reference to a file, but this server does not read secrets from files";
  const bool climbs = path.find("/../") != std::string_view::npos || path.ends_with("/..");
  if (path.find('\0') != std::string_view::npos || climbs || !is_below_any(path, policy.directories))
    return "is a reference to a file outside the directories that are allowed for secrets";
  return std::nullopt;
}

std::optional<std::string> why_not_variable(const ReferencePolicy& policy, std::string_view name) {
  if (policy.environment_prefix.empty())
    return "is a reference to a variable, but this server does not read secrets from its environment";
  const bool is_ours = name.starts_with(kOwnPrefix);
  if (!name.starts_with(policy.environment_prefix) || is_ours || !is_plain(name, "_"))
    return "is a reference to a variable that does not begin with " + policy.environment_prefix;
  return std::nullopt;
}

// "program" or "program argument"; one argument of harmless characters that is no option.
struct Invocation {
  std::string program;
  std::string argument;
};

Invocation split(std::string_view text) {
  const size_t space = text.find(' ');
  if (space == std::string_view::npos) return {std::string(text), {}};
  return {std::string(text.substr(0, space)), std::string(text.substr(space + 1))};
}

std::optional<std::string> why_not_program(const ReferencePolicy& policy, std::string_view text) {
  if (policy.programs.empty())
    return "is a reference to a program, but this server does not run programs for secrets";
  const Invocation invocation = split(text);
  const auto& programs = policy.programs;
  if (std::find(programs.begin(), programs.end(), invocation.program) == programs.end())
    return "is a reference to a program that is not allowed for secrets";
  const std::string& argument = invocation.argument;
  if (argument.size() > kArgumentMax || argument.starts_with('-') || !is_plain(argument, "._/:-"))
    return "has an argument that begins with - or contains characters other than letters, digits and ._/:-";
  return std::nullopt;
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }

 private:
  int number_;
};

// The real path, with symbolic links resolved; it must be allowed as well.
Resolved read_file(const ReferencePolicy& policy, const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), &std::free);
  if (!real) return base::Failure{std::string("the file cannot be read: ") + std::strerror(errno)};
  std::vector<std::string> real_directories;
  for (const std::string& directory : policy.directories) {
    const std::unique_ptr<char, decltype(&std::free)> there(realpath(directory.c_str(), nullptr), &std::free);
    if (there) real_directories.emplace_back(there.get());
  }
  if (!is_below_any(real.get(), real_directories))
    return base::Failure{std::string("the file is a link that leaves the directories for secrets")};
  const Descriptor file(open(real.get(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info{};
  if (file.get() < 0 || fstat(file.get(), &info) != 0)
    return base::Failure{std::string("the file cannot be read: ") + std::strerror(errno)};
  if (!S_ISREG(info.st_mode)) return base::Failure{std::string("it is not a regular file")};
  std::string text(kSecretBytesMax + 1, '\0');
  const ssize_t got = read(file.get(), text.data(), text.size());
  if (got < 0) return base::Failure{std::string("the file cannot be read: ") + std::strerror(errno)};
  if (static_cast<size_t>(got) > kSecretBytesMax) return base::Failure{std::string("the file is too large")};
  text.resize(static_cast<size_t>(got));
  return text;
}

Resolved read_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return base::Failure{std::string("the variable is not set")};
  return std::string(value);
}

Resolved run_program(const ReferencePolicy& policy, std::string_view text) {
  Invocation invocation = split(text);
  std::vector<std::string> arguments{std::move(invocation.program)};
  if (!invocation.argument.empty()) arguments.push_back(std::move(invocation.argument));
  auto printed = config::run_command(arguments, policy.timeout);
  if (!printed) return base::Failure{"the program " + printed.error()};
  return printed;
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(blanks) - first + 1));
}

}  // namespace

bool is_reference(std::string_view secret) {
  return secret.starts_with(kFile) || secret.starts_with(kEnvironment) || secret.starts_with(kProgram);
}

std::optional<std::string> why_not(const ReferencePolicy& policy, std::string_view reference) {
  if (reference.starts_with(kFile)) return why_not_file(policy, reference.substr(kFile.size()));
  if (reference.starts_with(kEnvironment))
    return why_not_variable(policy, reference.substr(kEnvironment.size()));
  if (reference.starts_with(kProgram)) return why_not_program(policy, reference.substr(kProgram.size()));
  return "is not a reference";
}

std::optional<std::string> why_not_secret(const ReferencePolicy* policy, crypto::SignatureScheme scheme,
                                          std::string_view secret) {
  if (!is_reference(secret)) {
    const auto key = crypto::SigningKey::from_secret(scheme, secret);
    if (!key) return key.error();
    return std::nullopt;
  }
  const ReferencePolicy none;
  return why_not(policy ? *policy : none, secret);
}

Resolved resolve(const ReferencePolicy& policy, std::string_view reference) {
  if (auto rejection = why_not(policy, reference)) return base::Failure{"it " + *rejection};
  Resolved found = base::Failure{std::string()};
  if (reference.starts_with(kFile))
    found = read_file(policy, std::string(reference.substr(kFile.size())));
  else if (reference.starts_with(kEnvironment))
    found = read_variable(std::string(reference.substr(kEnvironment.size())));
  else
    found = run_program(policy, reference.substr(kProgram.size()));
  if (!found) return found;
  std::string secret = trimmed(*found);
  if (secret.empty()) return base::Failure{std::string("it is empty")};
  return secret;
}

}  // namespace postrider::registry
