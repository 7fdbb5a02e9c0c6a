#include "support/database.hpp"

#include <unistd.h>

#include <atomic>

#include "postrider/pg/migrate.hpp"
#include "postrider/sql/migrations.hpp"
#include "support/cluster.hpp"
#include "support/run.hpp"

namespace postrider::support {

namespace {

SyncSql server() {
  return SyncSql(Cluster::get().superuser_url("postgres"));
}

runtime::Task<void> migrate(runtime::Loop& loop, std::string url) {
  const std::unique_ptr<pg::Connection> connection = co_await pg::Connection::open(loop, pg::migrating(url));
  pg::MigrateOptions options;
  options.migrations = sql::migrations;
  options.postrider_version = "test";
  options.buckets = buckets;
  co_await pg::migrate(*connection, options);
}

// Named for the process, since several may share a cluster.
class Template {
 public:
  static const std::string& name() {
    Cluster::get();  // made first, so gone last
    static const Template made;
    return made.name_;
  }

 private:
  Template() : name_("template_" + std::to_string(getpid())) {
    server()("create database " + name_ + " owner postrider");
    runtime::Loop loop;
    run(loop, migrate(loop, Cluster::get().url(name_)));
  }
  ~Template() {
    if (!Cluster::get().is_own()) server()("drop database " + name_ + " with (force)");
  }
  std::string name_;
};

std::string create(Database::Schema schema) {
  static std::atomic<int> made{0};
  const std::string from = schema == Database::Schema::migrated ? Template::name() : "template0";
  const std::string name = "test_" + std::to_string(getpid()) + "_" + std::to_string(++made);
  server()("create database " + name + " owner postrider template " + from);
  return name;
}

}  // namespace

Database::Database(Schema schema) : name_(create(schema)), owner_(Cluster::get().url(name_)) {}

Database::~Database() {
  server()("drop database " + name_ + " with (force)");
}

std::string Database::url() const {
  return Cluster::get().url(name_);
}

std::string Database::superuser_url() const {
  return Cluster::get().superuser_url(name_);
}

}  // namespace postrider::support
