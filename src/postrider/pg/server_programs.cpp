#include "postrider/pg/server_programs.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "postrider/pg/child_process.hpp"

namespace postrider::pg {
namespace {

namespace fs = std::filesystem;

std::string first_line_of(const std::vector<std::string>& command) {
  try {
    const Finished finished = run_child(
        {.arguments = command, .environment = {"PATH=/usr/bin:/bin", "LC_ALL=C"}, .directory = "/"});
    if (finished.exit_code != 0) return "";
    return finished.output.substr(0, finished.output.find('\n'));
  } catch (const std::system_error&) {
    return "";
  }
}

void add_debian_directories(std::vector<std::string>& directories) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", error))
    directories.push_back((entry.path() / "bin").string());
}

void add_path_directories(std::vector<std::string>& directories) {
  const char* path = std::getenv("PATH");
  std::istringstream parts(path == nullptr ? "" : path);
  for (std::string directory; std::getline(parts, directory, ':');)
    if (directory.starts_with('/')) directories.push_back(directory);
}

}  // namespace

std::string version_line_of(const ServerPrograms& programs) {
  return first_line_of({programs.postgres(), "--version"});
}

std::optional<int> parse_server_major(const std::string& version_line) {
  const size_t digits = version_line.find_first_of("0123456789");
  if (!version_line.starts_with("postgres") || digits == std::string::npos) return std::nullopt;
  int major = 0;
  std::from_chars(version_line.data() + digits, version_line.data() + version_line.size(), major);
  return major;
}

std::vector<std::string> usual_program_directories() {
  std::vector<std::string> directories;
  add_debian_directories(directories);
  if (::access("/usr/bin/pg_config", X_OK) == 0)
    if (std::string directory = first_line_of({"/usr/bin/pg_config", "--bindir"}); !directory.empty())
      directories.push_back(std::move(directory));
  add_path_directories(directories);
  return directories;
}

std::vector<ServerPrograms> find_server_programs(const std::vector<std::string>& directories) {
  std::vector<ServerPrograms> found;
  std::vector<std::string> seen;
  for (const std::string& directory : directories) {
    std::error_code error;
    const std::string real = fs::canonical(directory, error).string();
    if (error || std::find(seen.begin(), seen.end(), real) != seen.end()) continue;
    seen.push_back(real);
    ServerPrograms programs{.directory = real};
    if (::access(programs.postgres().c_str(), X_OK) != 0 || ::access(programs.initdb().c_str(), X_OK) != 0)
      continue;
    const auto major = parse_server_major(version_line_of(programs));
    if (!major) continue;
    programs.major = *major;
    found.push_back(std::move(programs));
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.major > b.major; });
  return found;
}

}  // namespace postrider::pg
