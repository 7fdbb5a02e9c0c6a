#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>

#include "postrider/config/load.hpp"
#include "postrider/server/database.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::server {
namespace {

constexpr auto kCommandTimeout = std::chrono::seconds(30);

crypto::MasterKeys parsed(const std::string& text, const std::string& from) {
  auto keys = crypto::MasterKeys::parse(text);
  if (!keys)
    throw config::ConfigError(
        fmt::format("The master key from {} cannot be used: {}. `openssl rand -base64 32` generates one.",
                    from, keys.error()));
  return std::move(*keys);
}

[[noreturn]] void fail(const std::string& what, const std::string& path) {
  throw config::ConfigError(fmt::format("{} {}: {}", what, path, std::strerror(errno)));
}

std::optional<std::string> read_key_file(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) {
    // A data directory that is a file is reported by the private Postgres.
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    fail("cannot read", path);
  }
  if ((info.st_mode & 077) != 0)
    throw config::ConfigError(fmt::format("{} must not be readable by others: chmod 600 {}", path, path));
  std::ifstream file(path);
  if (!file) fail("cannot read", path);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

// Complete on disk before it has its name: a key that seals secrets must not be lost with the power.
std::string make_key_file(const std::string& path) {
  std::string text = crypto::MasterKeys::generate() + "\n";
  const std::string unfinished = path + ".new";
  ::unlink(unfinished.c_str());
  const int fd = ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const bool written = fd >= 0 &&
                       ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       ::fsync(fd) == 0;
  if (fd >= 0) ::close(fd);
  if (!written || ::rename(unfinished.c_str(), path.c_str()) != 0) fail("cannot write", path);
  telemetry::log_info("master_key_made")
      .field("file", path)
      .field(
          "note",
          "back it up separately from the database: without it, the secrets in the database cannot be read");
  return text;
}

std::string key_file(const config::Config& config) {
  return config.data_dir + "/master.key";
}

}  // namespace

std::optional<crypto::MasterKeys> find_master_keys(const config::Config& config, bool is_private) {
  if (const auto text = config::resolve_master_key(config, kCommandTimeout))
    return parsed(*text, config.master_key.empty() ? "the master key command" : "the setting master_key");
  if (!is_private)
    throw config::ConfigError(
        "POSTRIDER_MASTER_KEY (or _FILE, or _COMMAND) is required with POSTRIDER_DATABASE_URL: 32 bytes in "
        "base64 or "
        "hex that encrypt endpoint secrets, the same on every node; `openssl rand -base64 32` generates "
        "one.");
  const std::string path = key_file(config);
  const auto text = read_key_file(path);
  if (!text) return std::nullopt;
  return parsed(*text, path);
}

crypto::MasterKeys load_master_keys(const config::Config& config, bool is_private) {
  if (auto found = find_master_keys(config, is_private)) return std::move(*found);
  const std::string path = key_file(config);
  return parsed(make_key_file(path), path);
}

}  // namespace postrider::server
