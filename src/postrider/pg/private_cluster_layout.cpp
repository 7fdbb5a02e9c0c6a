#include "postrider/pg/private_cluster_layout.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "postrider/pg/private_cluster.hpp"

namespace postrider::pg {
namespace {

namespace fs = std::filesystem;

constexpr size_t socket_path_bytes_max = 100;  // the system's limit is 107
constexpr std::string_view socket_name = "/.s.PGSQL.5432";

[[noreturn]] void fail_errno(const std::string& what) {
  throw PrivateClusterError(fmt::format("{}: {}", what, std::strerror(errno)));
}

bool is_root() {
  return ::geteuid() == 0;
}

// FNV-1a: only distinguishes data directories.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

User choose_server_user(const std::string& data_dir) {
  if (!is_root()) return User::current();
  struct stat info{};
  if (::stat((data_dir + "/postgres").c_str(), &info) == 0) {
    if (info.st_uid == 0)
      throw PrivateClusterError(fmt::format(
          "{}/postgres belongs to root, and Postgres does not run as root; give it to the user postgres",
          data_dir));
    if (auto owner = User::by_uid(info.st_uid)) return *owner;
    return User{.uid = info.st_uid, .gid = info.st_gid, .name = ""};
  }
  if (auto user = User::by_name("postgres")) return *user;
  throw PrivateClusterError(
      "Postgres does not run as root and there is no user postgres; install postgresql-15, "
      "or run postrider as another user");
}

}  // namespace

std::string ClusterLayout::socket_directory() const {
  std::string beside = data_dir + "/socket";
  if (is_reachable && beside.size() + socket_name.size() <= socket_path_bytes_max) return beside;
  const char* base = is_root() && ::access("/run", W_OK) == 0 ? "/run" : "/tmp";
  return fmt::format("{}/postrider-{}-{:016x}", base, server_user.uid, hash_of(data_dir));
}

std::optional<User> ClusterLayout::change_to() const {
  if (!is_root()) return std::nullopt;
  return server_user;
}

ClusterLayout ClusterLayout::prepare(const std::string& data_dir) {
  std::error_code error;
  fs::create_directories(fs::path(data_dir).parent_path(), error);
  // Under root, the server's user must be able to traverse it; secret files inside have their own
  // permissions.
  if (::mkdir(data_dir.c_str(), is_root() ? 0711 : 0700) != 0 && errno != EEXIST)
    fail_errno("cannot create the data directory " + data_dir);
  const std::string absolute = fs::canonical(data_dir, error).string();
  if (error) throw PrivateClusterError(fmt::format("data directory {}: {}", data_dir, error.message()));
  if (!fs::is_directory(absolute, error))
    throw PrivateClusterError(fmt::format("the data directory {} is not a directory", absolute));
  if (::access(absolute.c_str(), W_OK | X_OK) != 0)
    fail_errno("cannot write to the data directory " + absolute);

  ClusterLayout layout{
      .data_dir = absolute, .server_user = choose_server_user(absolute), .is_reachable = false};
  struct stat info{};
  if (::stat(layout.cluster().c_str(), &info) == 0 && info.st_uid != layout.server_user.uid)
    throw PrivateClusterError(fmt::format(
        "{} belongs to another user (uid {}); run postrider as that user or choose another data directory",
        layout.cluster(), info.st_uid));
  layout.is_reachable = can_enter(layout.server_user, absolute);
  return layout;
}

void make_private_directory(const std::string& path, const User& owner) {
  if (::mkdir(path.c_str(), 0700) == 0) {
    if (is_root() && ::chown(path.c_str(), owner.uid, owner.gid) != 0)
      fail_errno("cannot change the owner of " + path);
  } else if (errno != EEXIST) {
    fail_errno("cannot create the directory " + path);
  }
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) fail_errno(path);
  if (!S_ISDIR(info.st_mode) || info.st_uid != owner.uid || (info.st_mode & 077) != 0)
    throw PrivateClusterError(fmt::format(
        "{} must be a directory owned by user {} with mode 0700; correct its owner and mode, or remove it",
        path, owner.name.empty() ? std::to_string(owner.uid) : owner.name));
}

void write_owned_file(const std::string& path, const std::string& text, const User& owner) {
  std::ofstream file(path, std::ios::trunc | std::ios::binary);
  file << text;
  file.close();
  if (!file || ::chmod(path.c_str(), 0600) != 0) fail_errno("cannot write " + path);
  if (is_root() && ::chown(path.c_str(), owner.uid, owner.gid) != 0)
    fail_errno("cannot change the owner of " + path);
}

std::optional<int> cluster_major(const std::string& cluster) {
  const std::string version = cluster + "/PG_VERSION";
  if (::access(version.c_str(), R_OK) != 0 && errno == EACCES)
    throw PrivateClusterError(fmt::format(
        "{} belongs to another user; run this as the user that runs `postrider serve`, or as root", cluster));
  std::error_code error;
  if (!fs::exists(cluster, error)) return std::nullopt;
  std::ifstream file(version);
  int major = 0;
  if (!(file >> major))
    throw PrivateClusterError(fmt::format("{} is there but is no Postgres cluster (no PG_VERSION)", cluster));
  return major;
}

std::optional<Postmaster> running_postmaster(const std::string& cluster) {
  std::ifstream file(cluster + "/postmaster.pid");
  // pid, data directory, start time, port, socket directory, address, shared memory, status
  std::vector<std::string> lines;
  for (std::string line; lines.size() < 5 && std::getline(file, line);) lines.push_back(line);
  if (lines.empty()) return std::nullopt;
  Postmaster postmaster{.pid = static_cast<pid_t>(std::strtol(lines[0].c_str(), nullptr, 10)),
                        .socket_directory = lines.size() >= 5 ? lines[4] : ""};
  if (postmaster.pid <= 1) return std::nullopt;
  struct stat serves{}, wanted{};
  if (::stat(fmt::format("/proc/{}/cwd", postmaster.pid).c_str(), &serves) != 0 ||
      ::stat(cluster.c_str(), &wanted) != 0 || serves.st_dev != wanted.st_dev ||
      serves.st_ino != wanted.st_ino)
    return std::nullopt;
  return postmaster;
}

std::string server_settings_file(int major) {
  const int64_t memory = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  const int64_t shared_mib = std::clamp<int64_t>(memory / 8 >> 20, 64, 1024);
  return fmt::format(R"(# Written by postrider when it made this cluster; yours to tune from now on.
# Durability (fsync, full_page_writes, synchronous_commit) and addresses are set on the command line.
max_connections = 100
shared_buffers = {}MB
wal_compression = {}
min_wal_size = 256MB
max_wal_size = 4GB
max_slot_wal_keep_size = 4GB
checkpoint_timeout = 10min
checkpoint_completion_target = 0.9
random_page_cost = 1.1
jit = off
autovacuum_naptime = 15s
timezone = 'UTC'
log_timezone = 'UTC'
lc_messages = 'C.UTF-8'

# Statements and their parameters carry payloads: they stay out of the log.
log_line_prefix = '%m [%p] '
log_checkpoints = off
log_error_verbosity = terse
log_min_error_statement = panic
log_parameter_max_length_on_error = 0
)",
                     shared_mib, major >= 15 ? "lz4" : "on");
}

std::string client_authentication_file() {
  return "# Written by postrider. Only through the socket, only for the users in pg_ident.conf.\n"
         "local all all peer map=postrider\n";
}

std::string identity_map_file(const std::vector<std::string>& system_users) {
  std::string text = "# Written by postrider: map, system user, role.\n";
  for (const std::string& user : system_users)
    for (const char* role : {"postrider", "postgres"})
      text += fmt::format("postrider \"{}\" {}\n", user, role);
  return text;
}

std::string first_statements() {
  // It may read a replication slot; pg_hba.conf does not allow copying the cluster.
  return "create role postrider login replication;\n"
         "create role postrider_publisher nologin;\n"
         "create role postrider_consumer nologin;\n"
         "create role postrider_support nologin;\n"
         "create role postrider_support_payloads nologin;\n"
         "create database postrider owner postrider;\n";
}

bool has_replication_slots(const std::string& cluster) {
  std::error_code error;
  const fs::directory_iterator slots(cluster + "/pg_replslot", error);
  return !error && slots != fs::directory_iterator();
}

bool was_started_for_capture(const std::string& cluster) {
  std::ifstream file(cluster + "/postmaster.opts");
  const std::string options((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return options.find(capture_setting) != std::string::npos;
}

std::vector<std::string> fixed_settings(const std::string& socket_directory) {
  // A list of quoted paths, so a path may contain commas and spaces.
  std::string quoted = "\"";
  for (const char c : socket_directory) quoted.append(c == '"' ? 2 : 1, c);
  quoted += '"';
  return {"-c", "listen_addresses=",
          "-c", "port=5432",
          "-c", "unix_socket_directories=" + quoted,
          "-c", "unix_socket_permissions=0700",
          "-c", "fsync=on",
          "-c", "full_page_writes=on",
          "-c", "synchronous_commit=on",
          "-c", "logging_collector=off",
          "-c", "log_destination=stderr"};
}

}  // namespace postrider::pg
