#include "postrider/pg/private_cluster.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

#include "postrider/pg/child_process.hpp"
#include "postrider/pg/private_cluster_layout.hpp"
#include "postrider/pg/server_programs.hpp"
#include "support/sync_sql.hpp"

namespace postrider::pg {
namespace {

namespace fs = std::filesystem;
using support::SyncSql;
using testing::HasSubstr;
using testing::Not;

bool is_root() {
  return ::geteuid() == 0;
}

// A directory that every user may traverse, deleted at the end.
class TempDir {
 public:
  TempDir() {
    std::string name = "/tmp/private-cluster-XXXXXX";
    path_ = ::mkdtemp(name.data());
    ::chmod(path_.c_str(), 0755);
  }
  ~TempDir() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  std::string path(const std::string& name = "data") const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// A data directory with an existing cluster, so that only the tests of its creation create one.
void copy_made_cluster(const std::string& data_dir) {
  static const TempDir made;
  if (!fs::exists(made.path("data/postgres")))
    PrivateCluster(PrivateClusterOptions{.data_dir = made.path()}).stop();
  const Finished copied =
      run_child({.arguments = {"/bin/cp", "-a", made.path(), data_dir}, .environment = {}});
  ASSERT_EQ(copied.exit_code, 0) << copied.output;
}

PrivateClusterOptions options_for(const std::string& data_dir) {
  return {.data_dir = data_dir, .program_directories = {}, .orphan_grace = std::chrono::seconds(120)};
}

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const PrivateClusterError& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

// A process that serves from `data_dir` until it is killed; returns once its server takes connections.
pid_t start_serving(const PrivateClusterOptions& options) {
  std::array<int, 2> ready{};
  EXPECT_EQ(::pipe(ready.data()), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    PrivateCluster cluster(options);
    EXPECT_EQ(::write(ready[1], "x", 1), 1);
    while (true) ::pause();
  }
  char byte = 0;
  ::close(ready[1]);
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  return pid;
}

void kill_9(pid_t pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

void wait_until(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!holds()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// A directory of server programs whose `postgres` claims to be another version.
class FakeInstallation {
 public:
  explicit FakeInstallation(const TempDir& dir) : directory_(dir.path("bin")), real_(newest()) {
    fs::create_directory(directory_);
    fs::create_symlink(real_.initdb(), directory_ + "/initdb");
    install(version_line_of(real_));
  }
  const std::string& directory() const { return directory_; }
  std::string minor(const std::string& number) const {
    return "postgres (PostgreSQL) " + std::to_string(real_.major) + "." + number;
  }
  void install(const std::string& version_line) {
    const std::string file = directory_ + "/postgres";
    std::ofstream(file + ".new") << "#!/bin/sh\n[ \"$1\" = --version ] && echo '" << version_line
                                 << "' && exit\nexec " << real_.postgres() << " \"$@\"\n";
    fs::permissions(file + ".new", fs::perms(0755));
    fs::rename(file + ".new", file);
  }

 private:
  static ServerPrograms newest() { return find_server_programs(usual_program_directories()).front(); }
  std::string directory_;
  ServerPrograms real_;
};

TEST(PrivateCluster, IsRestartedOnceAfterAMinorUpgrade) {
  TempDir dir;
  copy_made_cluster(dir.path());
  FakeInstallation installation(dir);
  PrivateClusterOptions options = options_for(dir.path());
  options.program_directories = {installation.directory()};
  options.upgrade_settle = std::chrono::milliseconds(0);
  PrivateCluster cluster(options);
  const pid_t first = cluster.pid();
  EXPECT_FALSE(cluster.upgrade());
  EXPECT_FALSE(cluster.restart_if_upgraded());

  installation.install(installation.minor("998"));
  ASSERT_TRUE(cluster.upgrade());
  EXPECT_THAT(cluster.upgrade()->installed, testing::EndsWith(".998"));
  EXPECT_EQ(cluster.upgrade()->running, SyncSql(cluster.url())("show server_version"));
  EXPECT_TRUE(cluster.restart_if_upgraded());
  const pid_t second = cluster.pid();
  EXPECT_NE(second, first);
  EXPECT_EQ(SyncSql(cluster.url())("select 1"), "1");

  EXPECT_FALSE(cluster.restart_if_upgraded());
  EXPECT_TRUE(cluster.upgrade()) << "it is still reported";
  EXPECT_EQ(cluster.pid(), second);
  installation.install(installation.minor("999"));
  EXPECT_TRUE(cluster.restart_if_upgraded());
}

TEST(UpgradeWatch, WaitsUntilNoFileIsReplacedAnyMore) {
  using namespace std::chrono_literals;
  UpgradeWatch watch(10s);
  const UpgradeWatch::Time start{};
  const std::optional<ServerUpgrade> half{{"15.1", "15.2"}}, whole{{"15.1", "15.3"}};
  EXPECT_FALSE(watch.should_restart(std::nullopt, start));
  EXPECT_FALSE(watch.should_restart(half, start));
  EXPECT_FALSE(watch.should_restart(whole, start + 9s));
  EXPECT_FALSE(watch.should_restart(whole, start + 18s));
  EXPECT_TRUE(watch.should_restart(whole, start + 19s));
  EXPECT_FALSE(watch.should_restart(whole, start + 60s));
}

TEST(PrivateCluster, IsDurableUtf8AndChecksummed) {
  TempDir dir;
  PrivateCluster cluster(options_for(dir.path()));
  SyncSql sql(cluster.url());
  EXPECT_EQ(sql("select current_setting('fsync'), current_setting('full_page_writes'),"
                " current_setting('synchronous_commit'), current_setting('data_checksums')"),
            "on|on|on|on");
  EXPECT_EQ(sql("select pg_encoding_to_char(encoding), datcollate, datctype from pg_database"
                " where datname = current_database()"),
            "UTF8|C.UTF-8|C.UTF-8");
  EXPECT_EQ(sql("show timezone"), "UTC");
}

TEST(PrivateCluster, AnEditedSettingsFileCannotMakeItForgetful) {
  TempDir dir;
  copy_made_cluster(dir.path());
  std::ofstream(dir.path("data/postgres/postgresql.conf"), std::ios::app)
      << "fsync = off\nfull_page_writes = off\nsynchronous_commit = off\nlisten_addresses = '*'\n";
  PrivateCluster cluster(options_for(dir.path()));
  SyncSql sql(cluster.url());
  EXPECT_EQ(sql("select current_setting('fsync'), current_setting('full_page_writes'),"
                " current_setting('synchronous_commit'), current_setting('listen_addresses')"),
            "on|on|on|");
}

TEST(PrivateCluster, CanBeStartedForChangeDataCapture) {
  TempDir dir;
  copy_made_cluster(dir.path());
  PrivateClusterOptions options = options_for(dir.path());
  options.is_for_capture = true;
  PrivateCluster cluster(options);
  SyncSql sql(cluster.url());
  EXPECT_EQ(sql("show wal_level"), "logical");
  EXPECT_EQ(sql("select slot_name from pg_create_logical_replication_slot('one', 'pgoutput')"), "one")
      << "its role may have a slot";
}

TEST(PrivateCluster, WithASlotItStartsAlthoughCaptureIsNoLongerWanted) {
  TempDir dir;
  copy_made_cluster(dir.path());
  PrivateClusterOptions options = options_for(dir.path());
  options.is_for_capture = true;
  {
    PrivateCluster cluster(options);
    SyncSql sql(cluster.url());
    sql("select pg_create_logical_replication_slot('one', 'pgoutput')");
  }
  options.is_for_capture = false;
  {
    PrivateCluster cluster(options);
    SyncSql sql(cluster.url());
    EXPECT_EQ(sql("show wal_level"), "logical");
    sql("select pg_drop_replication_slot('one')");
  }
  PrivateCluster cluster(options);
  EXPECT_EQ(SyncSql(cluster.url())("show wal_level"), "replica");
}

TEST(PrivateCluster, AnAdoptedServerIsStartedAnewForCapture) {
  TempDir dir;
  copy_made_cluster(dir.path());
  PrivateClusterOptions options = options_for(dir.path());
  kill_9(start_serving(options));
  options.is_for_capture = true;
  PrivateCluster cluster(options);
  EXPECT_EQ(SyncSql(cluster.url())("show wal_level"), "logical");
}

TEST(PrivateCluster, ConnectsAsAnOwnerWhoIsNoSuperuser) {
  TempDir dir;
  copy_made_cluster(dir.path());
  PrivateCluster cluster(options_for(dir.path()));
  SyncSql sql(cluster.url());
  EXPECT_EQ(sql("select current_user, rolsuper, rolcreaterole from pg_roles where rolname = current_user"),
            "postrider|f|f");
  EXPECT_EQ(sql("select pg_get_userbyid(datdba) from pg_database where datname = current_database()"),
            "postrider");
  EXPECT_EQ(
      sql("create schema postrider; create table postrider.t (x int); select count(*) from postrider.t"),
      "0");
}

TEST(PrivateCluster, IsReachableOnlyThroughItsSocketAndOnlyForItsUsers) {
  TempDir dir;
  copy_made_cluster(dir.path());
  PrivateCluster cluster(options_for(dir.path()));
  struct stat info{};
  ASSERT_EQ(::stat(dir.path("data/socket").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
  EXPECT_EQ(SyncSql(cluster.url())("show listen_addresses"), "");
  EXPECT_EQ(read_all(dir.path("data/postgres/pg_hba.conf")).find("trust"), std::string::npos);
  if (!is_root()) GTEST_SKIP() << "needs root to be somebody else";
  // Even if the directory is accessible, the identity map keeps other users out.
  ::chmod(dir.path("data/socket").c_str(), 0777);
  ::chmod(dir.path("data/socket/.s.PGSQL.5432").c_str(), 0777);
  const Finished psql = run_child({.arguments = {"/usr/bin/psql", cluster.url(), "-c", "select 1"},
                                   .environment = {"PATH=/usr/bin:/bin"},
                                   .directory = "/",
                                   .user = User::by_name("nobody")});
  EXPECT_NE(psql.exit_code, 0);
  EXPECT_THAT(psql.output, HasSubstr("Peer authentication failed"));
}

TEST(PrivateCluster, KeepsItsDataBetweenRuns) {
  TempDir dir;
  copy_made_cluster(dir.path());
  {
    PrivateCluster cluster(options_for(dir.path()));
    SyncSql(cluster.url())("create table kept (x int); insert into kept values (42)");
  }
  EXPECT_FALSE(running_postmaster(dir.path("data/postgres")));
  PrivateCluster cluster(options_for(dir.path()));
  EXPECT_FALSE(cluster.is_adopted());
  EXPECT_EQ(SyncSql(cluster.url())("select x from kept"), "42");
}

TEST(PrivateCluster, TheServerInheritsNoKeysAndItsOwnSession) {
  TempDir dir;
  copy_made_cluster(dir.path());
  ::setenv("POSTRIDER_MASTER_KEY", "very-secret", 1);
  PrivateCluster cluster(options_for(dir.path()));
  ::unsetenv("POSTRIDER_MASTER_KEY");
  EXPECT_THAT(read_all("/proc/" + std::to_string(cluster.pid()) + "/environ"), Not(HasSubstr("POSTRIDER_")));
  EXPECT_EQ(::getsid(cluster.pid()), cluster.pid());
}

TEST(PrivateCluster, ALiveServerIsAdoptedAfterKillNine) {
  TempDir dir;
  copy_made_cluster(dir.path());
  kill_9(start_serving(options_for(dir.path())));
  const auto orphan = running_postmaster(dir.path("data/postgres"));
  ASSERT_TRUE(orphan);
  {
    PrivateCluster cluster(options_for(dir.path()));
    EXPECT_TRUE(cluster.is_adopted());
    EXPECT_EQ(cluster.pid(), orphan->pid);
    EXPECT_EQ(SyncSql(cluster.url())("select 1"), "1");
  }
  EXPECT_FALSE(running_postmaster(dir.path("data/postgres")));
}

TEST(PrivateCluster, AnOrphanIsStoppedAfterItsGrace) {
  TempDir dir;
  copy_made_cluster(dir.path());
  PrivateClusterOptions options = options_for(dir.path());
  options.orphan_grace = std::chrono::seconds(0);
  kill_9(start_serving(options));
  wait_until([&] { return !running_postmaster(dir.path("data/postgres")); });
}

TEST(PrivateCluster, OnlyOneAtATimeServesFromADirectory) {
  TempDir dir;
  copy_made_cluster(dir.path());
  PrivateCluster cluster(options_for(dir.path()));
  EXPECT_THAT(message_of([&] { PrivateCluster second(options_for(dir.path())); }),
              HasSubstr("another postrider"));
}

TEST(PrivateCluster, AServerThatDiedIsStartedAgain) {
  TempDir dir;
  copy_made_cluster(dir.path());
  PrivateCluster cluster(options_for(dir.path()));
  SyncSql(cluster.url())("create table kept (x int); insert into kept values (42)");
  EXPECT_FALSE(cluster.revive());
  ::kill(cluster.pid(), SIGKILL);
  wait_until([&] { return cluster.revive(); });
  EXPECT_EQ(SyncSql(cluster.url())("select x from kept"), "42");
}

TEST(PrivateCluster, AStalePidFileOfSomebodyElseDoesNotStopTheStart) {
  TempDir dir;
  copy_made_cluster(dir.path());
  // The pid now belongs to this test, which is running but is not a postmaster.
  std::ofstream(dir.path("data/postgres/postmaster.pid"))
      << ::getpid() << "\n"
      << dir.path("data/postgres") << "\n1\n5432\n/nowhere\n\n0 0\nready\n";
  PrivateCluster cluster(options_for(dir.path()));
  EXPECT_FALSE(cluster.is_adopted());
  EXPECT_EQ(SyncSql(cluster.url())("select 1"), "1");
}

TEST(PrivateCluster, AHalfMadeClusterIsMadeAnew) {
  TempDir dir;
  fs::create_directories(dir.path("data/postgres.new/base"));
  ::chmod(dir.path("data").c_str(), 0755);
  PrivateCluster cluster(options_for(dir.path()));
  EXPECT_EQ(SyncSql(cluster.url())("select 1"), "1");
  EXPECT_FALSE(fs::exists(dir.path("data/postgres.new")));
}

TEST(PrivateCluster, ALongPathGetsAShortSocket) {
  TempDir dir;
  const std::string data_dir = dir.path(std::string(110, 'x'));
  PrivateCluster cluster(options_for(data_dir));
  EXPECT_EQ(SyncSql(cluster.url())("select 1"), "1");
  EXPECT_EQ(PrivateCluster::url_of(data_dir), cluster.url());
  EXPECT_THAT(cluster.url(), Not(HasSubstr("xxx")));
  fs::remove_all(ClusterLayout::prepare(data_dir).socket_directory());
}

TEST(PrivateCluster, RootMayKeepItWhereTheServersUserCannotWalk) {
  if (!is_root()) GTEST_SKIP() << "needs root";
  TempDir dir;
  fs::create_directory(dir.path("closed"));
  ::chmod(dir.path("closed").c_str(), 0700);
  const std::string data_dir = dir.path("closed/data");
  {
    PrivateCluster cluster(options_for(data_dir));
    EXPECT_EQ(
        SyncSql(cluster.url())("create table kept (x int); insert into kept values (7); select x from kept"),
        "7");
  }
  PrivateCluster cluster(options_for(data_dir));
  EXPECT_EQ(SyncSql(cluster.url())("select x from kept"), "7");
  cluster.stop();
  fs::remove_all(ClusterLayout::prepare(data_dir).socket_directory());
}

TEST(PrivateCluster, RunsAsAnOrdinaryUser) {
  if (!is_root()) GTEST_SKIP() << "the other tests do that already";
  TempDir dir;
  const User nobody = User::by_name("nobody").value();
  fs::create_directory(dir.path("home"));
  ASSERT_EQ(::chown(dir.path("home").c_str(), nobody.uid, nobody.gid), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::setgid(nobody.gid) != 0 || ::setuid(nobody.uid) != 0) ::_exit(2);
    int code = 3;
    try {
      PrivateCluster cluster(options_for(dir.path("home/data")));
      code = SyncSql(cluster.url())("select current_user") == "postrider" ? 0 : 4;
      cluster.stop();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  struct stat info{};
  ASSERT_EQ(::stat(dir.path("home/data").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
}

TEST(PrivateCluster, AClusterOfAnotherMajorVersionIsNamedWithWhatToInstall) {
  TempDir dir;
  copy_made_cluster(dir.path());
  std::ofstream(dir.path("data/postgres/PG_VERSION")) << "11\n";
  EXPECT_THAT(message_of([&] { PrivateCluster cluster(options_for(dir.path())); }),
              testing::AllOf(HasSubstr("was created by PostgreSQL 11"), HasSubstr("install postgresql-11")));
}

TEST(PrivateCluster, AMissingServerIsNamedWithWhatToInstall) {
  TempDir dir;
  PrivateClusterOptions options = options_for(dir.path());
  options.program_directories = {"/nonexistent"};
  EXPECT_THAT(message_of([&] { PrivateCluster cluster(options); }), HasSubstr("install postgresql-15"));
}

TEST(PrivateCluster, ADirectoryThatSomebodyElseMadeIsNotTrusted) {
  TempDir dir;
  fs::create_directory(dir.path("socket"));
  ::chmod(dir.path("socket").c_str(), 0755);
  EXPECT_THAT(message_of([&] { make_private_directory(dir.path("socket"), User::current()); }),
              HasSubstr("with mode 0700"));
}

TEST(ServerPrograms, ReadTheMajorVersion) {
  EXPECT_EQ(parse_server_major("postgres (PostgreSQL) 15.20 (Debian 15.20-0+deb12u1)"), 15);
  EXPECT_EQ(parse_server_major("postgres (PostgreSQL) 9.6.1"), 9);
  EXPECT_EQ(parse_server_major("something else 15"), std::nullopt);
}

}  // namespace
}  // namespace postrider::pg
