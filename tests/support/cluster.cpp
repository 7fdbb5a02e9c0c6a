#include "support/cluster.hpp"

#include <fcntl.h>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/sync_sql.hpp"

namespace postrider::support {

namespace {

using namespace std::chrono_literals;

constexpr auto start_timeout = 60s;

std::string server_binary(const char* name) {
  const char* chosen = std::getenv("POSTRIDER_TEST_PG_BIN");
  if (chosen != nullptr) return std::string(chosen) + "/" + name;
  for (const char* version : {"18", "17", "16", "15", "14"}) {
    const std::string path = std::string("/usr/lib/postgresql/") + version + "/bin/" + name;
    if (std::filesystem::exists(path)) return path;
  }
  throw std::runtime_error("no Postgres server found: set POSTRIDER_TEST_PG_BIN");
}

bool is_logical_wanted = false;

// Postgres does not run as root.
const passwd* server_user() {
  return geteuid() == 0 ? getpwnam("postgres") : nullptr;
}

// In the child of a fork: only calls that are safe there.
[[noreturn]] void become(const std::vector<char*>& arguments, const passwd* user, int log) {
  if (user != nullptr &&
      (setgroups(0, nullptr) != 0 || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0))
    _exit(126);
  prctl(PR_SET_PDEATHSIG, SIGQUIT);  // the server never outlives the thread that started it
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  setsid();
  execv(arguments[0], arguments.data());
  _exit(127);
}

pid_t spawn(std::vector<std::string> command, const std::string& log_path) {
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const passwd* user = server_user();
  const int log = open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const pid_t child = fork();
  if (child == 0) become(arguments, user, log);
  close(log);
  if (child < 0) throw std::runtime_error("fork failed");
  return child;
}

}  // namespace

bool Cluster::want_logical() {
  is_logical_wanted = true;
  return true;
}

Cluster& Cluster::get() {
  static Cluster cluster;
  return cluster;
}

Cluster::Cluster() {
  if (const char* running = std::getenv("POSTRIDER_TEST_CLUSTER")) {
    own_ = false;
    directory_ = running;
  } else {
    make();
    start();
  }
  SyncSql server(superuser_url("postgres"));
  if (server("select count(*) from pg_roles where rolname = 'postrider'") == "0")
    server("create role postrider login");
}

void Cluster::make() {
  char pattern[] = "/tmp/postrider-test-XXXXXX";
  if (mkdtemp(pattern) == nullptr) throw std::runtime_error("mkdtemp failed");
  directory_ = pattern;
  const passwd* user = server_user();
  if (user != nullptr && chown(directory_.c_str(), user->pw_uid, user->pw_gid) != 0)
    throw std::runtime_error("chown failed");
  const pid_t initdb =
      spawn({server_binary("initdb"), "--pgdata", directory_ + "/data", "--username", "postgres", "--auth",
             "trust", "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync"},
            directory_ + "/initdb.log");
  int status = 0;
  waitpid(initdb, &status, 0);
  if (status != 0) throw std::runtime_error("initdb failed, see " + directory_ + "/initdb.log");
}

void Cluster::start() {
  std::vector<std::string> command{server_binary("postgres"), "-D", directory_ + "/data", "-k", directory_};
  // Durability is what other tests are about.
  for (const char* setting : {"listen_addresses=", "fsync=off", "full_page_writes=off", "max_connections=100",
                              "shared_buffers=32MB", "autovacuum_naptime=5s",
                              is_logical_wanted ? "max_wal_senders=10" : "max_wal_senders=0",
                              is_logical_wanted ? "wal_level=logical" : "wal_level=minimal"}) {
    command.push_back("-c");
    command.push_back(setting);
  }
  postmaster_ = spawn(command, directory_ + "/server.log");
  const auto give_up = std::chrono::steady_clock::now() + start_timeout;
  while (PQping(superuser_url("postgres").c_str()) != PQPING_OK) {
    if (waitpid(postmaster_, nullptr, WNOHANG) != 0 || std::chrono::steady_clock::now() > give_up)
      throw std::runtime_error("Postgres does not start, see " + directory_ + "/server.log");
    std::this_thread::sleep_for(5ms);
  }
}

void Cluster::stop() {
  if (postmaster_ == 0) return;
  kill(postmaster_, SIGINT);
  waitpid(postmaster_, nullptr, 0);
  postmaster_ = 0;
}

Cluster::~Cluster() {
  if (!own_) return;
  if (postmaster_ != 0) kill(postmaster_, SIGQUIT);
  waitpid(postmaster_, nullptr, 0);
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::string Cluster::url(const std::string& database) const {
  return "host=" + directory_ + " user=postrider dbname=" + database;
}

std::string Cluster::superuser_url(const std::string& database) const {
  return "host=" + directory_ + " user=postgres dbname=" + database;
}

}  // namespace postrider::support
