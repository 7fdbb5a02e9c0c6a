#include "postrider/pg/private_cluster.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <libpq-fe.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

#include "postrider/pg/private_cluster_layout.hpp"
#include "postrider/pg/server_programs.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::pg {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
constexpr auto poll_interval = std::chrono::milliseconds(20);
constexpr auto lock_timeout = std::chrono::seconds(5);  // the watcher holds it for a moment
constexpr uintmax_t log_bytes_max = 16 << 20;

// Waits until its input, a pipe from postrider, is closed, then for the grace period. If no postrider serves
// the directory by then, stops the server. Arguments: seconds, lock file, cluster.
constexpr const char* watcher_script = R"(
cat >/dev/null
sleep "$1"
exec 9<>"$2"
flock -n 9 || exit 0
read -r pid <"$3/postmaster.pid" && [ "/proc/$pid/cwd" -ef "$3" ] && kill -INT "$pid"
)";

std::vector<std::string> clean_environment() {
  return {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "HOME=/nonexistent", "TZ=UTC"};
}

std::string percent_encoded(const std::string& text) {
  std::string encoded;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          c == '-' || c == '_' || c == '.';
    encoded += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

std::string url_at(const std::string& socket_directory) {
  return fmt::format("postgresql://postrider@/postrider?host={}&port=5432",
                     percent_encoded(socket_directory));
}

ServerPrograms choose_programs(const PrivateClusterOptions& options, std::optional<int> made_by,
                               const std::string& cluster) {
  const auto found = find_server_programs(options.program_directories.empty() ? usual_program_directories()
                                                                              : options.program_directories);
  for (const ServerPrograms& programs : found)
    if (made_by ? programs.major == *made_by : programs.major >= server_major_min) return programs;
  if (made_by)
    throw PrivateClusterError(fmt::format(
        "{} was created by PostgreSQL {}, {}; install postgresql-{}, or move the data with pg_upgrade",
        cluster, *made_by,
        found.empty() ? "and no Postgres server is installed"
                      : fmt::format("but version {} is installed", found.front().major),
        *made_by));
  if (!found.empty())
    throw PrivateClusterError(fmt::format(
        "the installed PostgreSQL {} is too old, postrider needs {} or newer: install postgresql-15, or set "
        "POSTRIDER_DATABASE_URL to use a database elsewhere",
        found.front().major, server_major_min));
  throw PrivateClusterError(
      "no Postgres server is installed: install postgresql-15 (apt-get install postgresql-15), or set "
      "POSTRIDER_DATABASE_URL to use a database elsewhere");
}

// The last lines that the server wrote after `offset`.
std::string log_tail(const std::string& path, std::streamoff offset) {
  std::ifstream file(path);
  file.seekg(offset);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  constexpr size_t tail_bytes = 2000;
  return text.size() > tail_bytes ? text.substr(text.size() - tail_bytes) : text;
}

}  // namespace

// Identifies an installed file.
struct FileIdentity {
  dev_t device = 0;
  ino_t number = 0;
  int64_t changed_ns = 0;
  bool operator==(const FileIdentity&) const = default;

  static FileIdentity of(const std::string& path) {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) return {};
    return {info.st_dev, info.st_ino, info.st_ctim.tv_sec * 1'000'000'000 + info.st_ctim.tv_nsec};
  }
};

struct PrivateCluster::State {
  PrivateClusterOptions options;
  ClusterLayout layout;
  ServerPrograms programs;
  std::string socket_directory;
  int lock_fd = -1;
  int watched_fd = -1;  // when it closes, the watcher knows that postrider has ended
  pid_t watcher = 0;
  pid_t postmaster = 0;
  bool is_child = false;  // else adopted
  std::streamoff log_start = 0;
  std::string running;    // version of the server
  std::string installed;  // version of the file below
  FileIdentity installed_file;
  UpgradeWatch upgrades;

  explicit State(PrivateClusterOptions given)
      : options(std::move(given)),
        layout(ClusterLayout::prepare(options.data_dir)),
        upgrades(options.upgrade_settle) {}
  ~State() {
    if (watched_fd >= 0) ::close(watched_fd);
    if (lock_fd >= 0) ::close(lock_fd);
  }

  void lock();
  void pause();
  void create();
  void launch();
  bool is_gone();
  bool wait_ready(Clock::time_point deadline);
  void bring_up();
  void start_watcher();
  void stop_watcher();
  bool wait_gone(std::chrono::seconds timeout);
  void shut_down();
  Finished run_as_server(std::vector<std::string> arguments, const std::string& directory,
                         std::string input = "");
};

void PrivateCluster::State::pause() {
  std::this_thread::sleep_for(poll_interval);
  if (options.check_stop) options.check_stop();
}

void PrivateCluster::State::lock() {
  lock_fd = ::open(layout.lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_fd < 0)
    throw PrivateClusterError(fmt::format("cannot open {}: {}", layout.lock(), std::strerror(errno)));
  const auto deadline = Clock::now() + lock_timeout;
  bool is_waiting = false;
  while (::flock(lock_fd, LOCK_EX | LOCK_NB) != 0) {
    if (!std::exchange(is_waiting, true))
      telemetry::log_info("data_directory_in_use")
          .field("directory", layout.data_dir)
          .field("wait_seconds", lock_timeout.count());
    if (Clock::now() > deadline) {
      std::array<char, 32> pid{};
      const ssize_t got = ::pread(lock_fd, pid.data(), pid.size() - 1, 0);
      throw PrivateClusterError(
          fmt::format("another postrider (pid {}) serves from {}; stop it or choose another data directory",
                      got > 0 ? std::string(pid.data()) : "unknown", layout.data_dir));
    }
    pause();
  }
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(lock_fd, 0) != 0 || ::pwrite(lock_fd, pid.data(), pid.size(), 0) < 0)
    throw PrivateClusterError(fmt::format("cannot write {}: {}", layout.lock(), std::strerror(errno)));
}

Finished PrivateCluster::State::run_as_server(std::vector<std::string> arguments,
                                              const std::string& directory, std::string input) {
  return run_child({.arguments = std::move(arguments),
                    .environment = clean_environment(),
                    .directory = directory,
                    .user = layout.change_to(),
                    .input = std::move(input),
                    .output_file = ""});
}

// Made under another name and renamed when it is complete: a crash in between leaves no incomplete cluster.
void PrivateCluster::State::create() {
  const std::string place = layout.unfinished();
  const std::string seen = layout.as_seen_by_server(place);
  telemetry::log_info("private_postgres_creating")
      .field("directory", layout.cluster())
      .field("version", programs.major);
  fs::remove_all(place);
  make_private_directory(place, layout.server_user);

  Finished made =
      run_as_server({programs.initdb(), "-D", seen, "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8",
                     "--data-checksums", "--auth=peer", "--no-instructions", "--no-sync"},
                    place);
  if (made.exit_code != 0) throw PrivateClusterError("initdb failed: " + made.output);

  std::vector<std::string> system_users{User::current().name};
  if (layout.server_user.name != system_users.front()) system_users.push_back(layout.server_user.name);
  if (system_users.front() != "root") system_users.emplace_back("root");
  write_owned_file(place + "/postgresql.conf", server_settings_file(programs.major), layout.server_user);
  write_owned_file(place + "/pg_hba.conf", client_authentication_file(), layout.server_user);
  write_owned_file(place + "/pg_ident.conf", identity_map_file(system_users), layout.server_user);

  Finished filled =
      run_as_server({programs.postgres(), "--single", "-D", seen, "postgres"}, place, first_statements());
  // A single-user backend continues after an error and still exits with 0.
  if (filled.exit_code != 0 || filled.output.find("ERROR:") != std::string::npos)
    throw PrivateClusterError("the new cluster could not be set up: " + filled.output);
  // One sync instead of initdb's thousand: complete on disk before it gets its name.
  const int directory = ::open(place.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = directory >= 0 && ::syncfs(directory) == 0;
  if (directory >= 0) ::close(directory);
  if (!synced) throw PrivateClusterError(fmt::format("cannot sync {}: {}", place, std::strerror(errno)));
  fs::rename(place, layout.cluster());
}

void PrivateCluster::State::launch() {
  // A stale file whose pid now belongs to another process would keep Postgres from starting.
  ::unlink(layout.pid_file().c_str());
  std::error_code error;
  if (fs::file_size(layout.log(), error) > log_bytes_max && !error)
    fs::rename(layout.log(), layout.log() + ".1", error);
  const uintmax_t size = fs::file_size(layout.log(), error);
  log_start = error ? 0 : static_cast<std::streamoff>(size);

  socket_directory = layout.socket_directory();
  make_private_directory(socket_directory, layout.server_user);
  std::vector<std::string> arguments{programs.postgres(), "-D", layout.as_seen_by_server(layout.cluster())};
  for (std::string& part : fixed_settings(socket_directory)) arguments.push_back(std::move(part));
  // With a slot Postgres does not start otherwise.
  const bool has_slots = has_replication_slots(layout.cluster());
  if (options.is_for_capture || has_slots) arguments.insert(arguments.end(), {"-c", capture_setting});
  if (has_slots && !options.is_for_capture)
    telemetry::log_warn("private_postgres_has_slots")
        .field("note",
               "there is a replication slot, so wal_level stays logical; `postrider outbox capture --mode "
               "table` drops it");
  postmaster = start_child({.arguments = std::move(arguments),
                            .environment = clean_environment(),
                            .directory = layout.cluster(),
                            .user = layout.change_to(),
                            .input = "",
                            .output_file = layout.log()});
  is_child = true;
}

bool PrivateCluster::State::is_gone() {
  if (postmaster == 0) return true;
  if (is_child) {
    int status = 0;
    if (::waitpid(postmaster, &status, WNOHANG) == 0) return false;
  } else {
    const auto found = running_postmaster(layout.cluster());
    // A postmaster removes its pid file a moment before it ends.
    if ((found && found->pid == postmaster) || fs::exists(fmt::format("/proc/{}/cwd/PG_VERSION", postmaster)))
      return false;
  }
  postmaster = 0;
  return true;
}

// False when the server ended before it took connections.
bool PrivateCluster::State::wait_ready(Clock::time_point deadline) {
  const std::string url = url_at(socket_directory) + "&connect_timeout=2";
  while (::PQping(url.c_str()) != PQPING_OK) {
    if (is_gone()) return false;
    if (Clock::now() > deadline)
      throw PrivateClusterError(
          fmt::format("the private Postgres in {} does not accept connections; its log ends with: {}",
                      layout.cluster(), log_tail(layout.log(), log_start)));
    pause();
  }
  return true;
}

void PrivateCluster::State::bring_up() {
  const auto deadline = Clock::now() + options.start_timeout;
  while (true) {
    if (const auto found = running_postmaster(layout.cluster())) {
      postmaster = found->pid;
      is_child = false;
      socket_directory =
          found->socket_directory.empty() ? layout.socket_directory() : found->socket_directory;
    } else {
      launch();
    }
    if (wait_ready(deadline)) break;
    if (!is_child) continue;  // it was shutting down when we found it
    // Backends of a postmaster that was killed end by themselves, within moments.
    const std::string said = log_tail(layout.log(), log_start);
    if (said.find("shared memory block") == std::string::npos || Clock::now() > deadline)
      throw PrivateClusterError(fmt::format(
          "the private Postgres in {} does not start; its log ends with: {}", layout.cluster(), said));
    std::this_thread::sleep_for(10 * poll_interval);
  }
  running = running_version(url_at(socket_directory) + "&connect_timeout=5");
  telemetry::log_info("private_postgres_ready")
      .field("directory", layout.cluster())
      .field("pid", postmaster)
      .field("adopted", !is_child);
}

void PrivateCluster::State::start_watcher() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw PrivateClusterError(fmt::format("pipe: {}", std::strerror(errno)));
  watched_fd = ends[1];
  watcher = start_child(
      {.arguments = {"/bin/sh", "-c", watcher_script, "postrider-watcher",
                     std::to_string(options.orphan_grace.count()), layout.lock(), layout.cluster()},
       .environment = clean_environment(),
       .directory = "/",
       .user = std::nullopt,
       .input = "",
       .input_fd = ends[0],
       .output_file = ""});
  ::close(ends[0]);
}

void PrivateCluster::State::stop_watcher() {
  if (watcher == 0) return;
  ::kill(-watcher, SIGKILL);  // it leads a session, so its group has its number
  ::waitpid(watcher, nullptr, 0);
  watcher = 0;
}

bool PrivateCluster::State::wait_gone(std::chrono::seconds timeout) {
  const auto deadline = Clock::now() + timeout;
  while (!is_gone()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(poll_interval);
  }
  return true;
}

void PrivateCluster::State::shut_down() {
  if (is_gone()) return;
  ::kill(postmaster, SIGINT);
  if (!wait_gone(options.stop_timeout)) {
    telemetry::log_warn("private_postgres_slow_stop").field("pid", postmaster);
    ::kill(postmaster, SIGQUIT);
    wait_gone(options.stop_timeout);
  }
  telemetry::log_info("private_postgres_stopped");
}

PrivateCluster::PrivateCluster(PrivateClusterOptions options)
    : state_(std::make_unique<State>(std::move(options))) {
  state_->lock();
  const auto made_by = cluster_major(state_->layout.cluster());
  state_->programs = choose_programs(state_->options, made_by, state_->layout.cluster());
  try {
    if (!made_by) state_->create();
    // The watcher comes first: from here on, kill -9 leaves no server running.
    state_->start_watcher();
    state_->bring_up();
    if (state_->options.is_for_capture && !was_started_for_capture(state_->layout.cluster())) {
      state_->shut_down();  // an adopted one, from before the setting was changed
      state_->bring_up();
    }
  } catch (const std::system_error& error) {
    throw PrivateClusterError(
        fmt::format("the private Postgres in {}: {}", state_->layout.cluster(), error.what()));
  } catch (const PrivateClusterError&) {
    throw;  // a server that is slow to recover is left to the watcher
  } catch (...) {
    stop();  // it was check_stop
    throw;
  }
  state_->options.check_stop = {};
}

PrivateCluster::~PrivateCluster() {
  stop();
}

std::string PrivateCluster::url() const {
  return url_at(state_->socket_directory);
}

bool PrivateCluster::is_adopted() const {
  return !state_->is_child;
}

pid_t PrivateCluster::pid() const {
  return state_->postmaster;
}

bool PrivateCluster::revive() {
  if (!state_->is_gone()) return false;
  telemetry::log_error("private_postgres_died")
      .field("log_tail", log_tail(state_->layout.log(), state_->log_start));
  state_->bring_up();
  return true;
}

std::optional<ServerUpgrade> PrivateCluster::upgrade() {
  State& state = *state_;
  const FileIdentity now = FileIdentity::of(state.programs.postgres());
  if (now != state.installed_file || state.installed.empty()) {
    state.installed = installed_version(state.programs);
    state.installed_file = now;
  }
  return compare_versions(state.running, state.installed);
}

bool PrivateCluster::restart_if_upgraded() {
  const std::optional<ServerUpgrade> found = upgrade();
  if (!state_->upgrades.should_restart(found, Clock::now())) return false;
  telemetry::log_warn("private_postgres_upgraded")
      .field("running", found->running)
      .field("installed", found->installed)
      .field("detail", "the server is restarted to run the installed version");
  state_->shut_down();
  state_->bring_up();
  return true;
}

void PrivateCluster::stop() {
  state_->shut_down();
  state_->stop_watcher();
}

std::optional<ServerUpgrade> PrivateCluster::upgrade_of(const std::string& data_dir) {
  const auto made_by = cluster_major(data_dir + "/postgres");
  if (!made_by) return std::nullopt;
  const ServerPrograms programs = choose_programs({.data_dir = data_dir}, made_by, data_dir + "/postgres");
  return compare_versions(running_version(url_of(data_dir)), installed_version(programs));
}

std::string PrivateCluster::url_of(const std::string& data_dir) {
  if (!cluster_major(data_dir + "/postgres"))
    throw PrivateClusterError(
        fmt::format("there is no private Postgres in {}: give the data_dir of the server, or start "
                    "`postrider serve`, which "
                    "creates it",
                    data_dir));
  const ClusterLayout layout = ClusterLayout::prepare(data_dir);
  const auto running = running_postmaster(layout.cluster());
  return url_at(running && !running->socket_directory.empty() ? running->socket_directory
                                                              : layout.socket_directory());
}

}  // namespace postrider::pg
