// The embedded SQL against the migrated schema, and the schema against its dump.
#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>

#include "postrider/pg/migrate.hpp"
#include "postrider/pg/repair.hpp"
#include "postrider/sql/all_statements.hpp"
#include "postrider/sql/migrations.hpp"
#include "postrider/sql/schema.hpp"
#include "support/database.hpp"
#include "support/run.hpp"

namespace postrider::pg {
namespace {

const std::string source_directory = POSTRIDER_SOURCE_DIRECTORY;

// Every .sql file of every folder, without being listed anywhere.
TEST(Schema, EveryStatementCanBePrepared) {
  const support::Database database;
  const std::unique_ptr<PGconn, decltype(&PQfinish)> conn(PQconnectdb(database.url().c_str()), &PQfinish);
  PQclear(PQexec(conn.get(), "set search_path = postrider"));
  for (const Statement& statement : sql::all_statements) {
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(
        PQprepare(conn.get(), statement.name, statement.text, 0, nullptr), &PQclear);
    EXPECT_EQ(PQresultStatus(result.get()), PGRES_COMMAND_OK)
        << statement.name << ": " << PQresultErrorMessage(result.get());
  }
}

TEST(Schema, TestDatabasesHaveAllMigrations) {
  support::Database database;
  EXPECT_EQ(database.sql("select count(*) from migration"), std::to_string(sql::migrations.size()));
}

// An id that a view computes as text is found by no index.
TEST(Schema, ViewsShowIdsAsTheyAreStored) {
  support::Database database;
  EXPECT_EQ(
      database.sql("select string_agg(attname, ',') from pg_attribute where attrelid = "
                   "'webhook_deliveries'::regclass and attname in ('id', 'event_id', 'endpoint_id') and "
                   "atttypid <> 'uuid'::regtype"),
      "");
  const std::string plan = database.sql(
      "set enable_seqscan = off; explain (costs off) select * from webhook_deliveries where id = "
      "delivery_id('dlv_' || repeat('0', 32))");
  EXPECT_NE(plan.find("Index Cond: (delivery_id = "), std::string::npos) << plan;
}

// A NOTIFY makes the commits of the whole server wait for each other, so it is sent after a commit, by
// itself.
TEST(Schema, OnlyTheStatementsThatDoNothingElseNotify) {
  std::string notifying;
  for (const Statement& statement : sql::all_statements)
    if (std::string_view(statement.text).find("pg_notify") != std::string_view::npos)
      notifying += std::string(statement.name) + " ";
  EXPECT_EQ(notifying, "cluster.publish_log.wake_others inbox.store.wake_consumers ");
  support::Database database;
  EXPECT_EQ(database.sql("select string_agg(proname, ',' order by proname) from pg_proc where pronamespace = "
                         "'postrider'::regnamespace "
                         "and prosrc ~* '\\m(pg_)?notify\\M'"),
            "outbox_set_aside,outbox_write")
      << "while the relay sleeps";
}

TEST(Schema, QueuesAreVacuumedOftenAndNeverTruncated) {
  support::Database database;
  EXPECT_EQ(database.sql(
                "select string_agg(relname, ',' order by relname) from pg_class where reloptions @> "
                "'{vacuum_truncate=off, autovacuum_vacuum_threshold=5000, autovacuum_vacuum_scale_factor=0, "
                "autovacuum_vacuum_cost_delay=0}'"),
            "inbox_queue,outbox,queue");
}

TEST(Schema, BodiesAreCompressedQuickly) {
  support::Database database;
  if (database.sql(
          "select 'lz4' = any (enumvals) from pg_settings where name = 'default_toast_compression'") == "f")
    GTEST_SKIP() << "this server is built without lz4";
  EXPECT_EQ(database.sql(
                "select string_agg(distinct c.relname || '.' || a.attname, ',') from pg_attribute a join "
                "pg_class c on c.oid = a.attrelid where attcompression = 'l' and c.relkind in ('r', 'p') and "
                "c.relname !~ '_[0-9]{8}$'"),
            "event.body,event_day.body,event_kept.body,inbox.body,outbox.data");
  EXPECT_EQ(
      database.sql(
          "select count(distinct c.oid) from pg_attribute a join pg_class c on c.oid = a.attrelid where "
          "a.attname = 'body' and a.attcompression <> 'l' and c.relkind = 'r'"),
      "0")
      << "each day as its parent";
}

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), &pclose);
  std::string output;
  std::array<char, 4096> buffer{};
  while (const size_t length = fread(buffer.data(), 1, buffer.size(), pipe.get()))
    output.append(buffer.data(), length);
  return output;
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

runtime::Task<std::vector<std::string>> repaired(runtime::Loop& loop, std::string url) {
  ConnectOptions options = migrating(std::move(url));
  auto opening = Connection::open(loop, std::move(options));
  const std::unique_ptr<Connection> connection = co_await opening;
  auto repairing = repair(*connection, sql::schema_statements);
  std::vector<std::string> made = co_await repairing;
  connection->close();
  co_return made;
}

// pg_dump's order depends on what was created first.
std::vector<std::string> statements_of(const std::string& dump) {
  std::vector<std::string> statements;
  for (size_t start = 0; start < dump.size();) {
    const size_t end = std::min(dump.find("\n\n", start), dump.size());
    statements.push_back(dump.substr(start, end - start));
    start = end + 2;
  }
  std::sort(statements.begin(), statements.end());
  return statements;
}

TEST(Schema, DroppedTablesAreMadeAgainAsTheyWere) {
  support::Database database;
  const std::string dumping =
      "/usr/bin/python3 " + source_directory + "/tools/dump_schema.py \"" + database.url() + "\"";
  const std::string before = output_of(dumping);
  const std::string rights =
      "select md5(string_agg(oid::regprocedure::text || proacl::text, ',' order by oid::regprocedure::text))"
      " from pg_proc where pronamespace = 'postrider'::regnamespace";
  const std::string rights_before = database.sql(rights);
  runtime::Loop loop;
  EXPECT_EQ(support::run(loop, repaired(loop, database.url())).size(), 0u) << "nothing was missing";
  for (const char* tables : {"queue, attempt", "dead_letter, event, rollup, outbox, inbox_queue"}) {
    database.sql("drop table " + std::string(tables) + " cascade");
    EXPECT_GT(support::run(loop, repaired(loop, database.url())).size(), 2u) << tables;
    EXPECT_EQ(statements_of(output_of(dumping)), statements_of(before)) << tables;
    database.sql("select grant_outbox(), grant_consumer(), grant_support()");
    EXPECT_EQ(database.sql(rights), rights_before) << tables;
  }
}

TEST(Schema, IsWhatTheDumpInTheSourceSays) {
  support::Database database;
  if (database.sql("show server_version_num").substr(0, 2) != "15")
    GTEST_SKIP() << "the dump is that of Postgres 15";
  const std::string dump =
      output_of("/usr/bin/python3 " + source_directory + "/tools/dump_schema.py \"" + database.url() + "\"");
  ASSERT_FALSE(dump.empty());
  const std::string path = source_directory + "/sql/schema.sql";
  if (std::getenv("POSTRIDER_WRITE_SCHEMA") != nullptr) std::ofstream(path) << dump;
  EXPECT_TRUE(text_of(path) == dump)
      << "the migrations have changed: run ./dev schema and look at the difference";
}

}  // namespace
}  // namespace postrider::pg
