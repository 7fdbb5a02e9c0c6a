#include "postrider/pg/connection.hpp"

#include <thread>

#include "postrider/pg/pgtest_fixture.hpp"
#include "support/cluster.hpp"

namespace postrider::pg {
namespace {

using namespace std::chrono_literals;
using runtime::Task;

constexpr Statement add{"test.add", "select $1::int + $2::int"};
constexpr Statement insert{"test.insert", "insert into item (id) values ($1::bigint)"};
constexpr Statement count{"test.count", "select count(*) from item"};
constexpr Statement divide{"test.divide", "select 1 / $1::int"};
constexpr Statement broken{"test.broken", "select nonsense from nowhere"};
constexpr Statement star{"test.star", "select * from item"};

struct ConnectionTest : ConnectedTest {
  ConnectionTest() { database.sql("create table item (id bigint primary key)"); }
  ConnectOptions to_public() {
    ConnectOptions chosen = options();
    chosen.search_path = "public";
    return chosen;
  }
  void SetUp() override { connection = run(Connection::open(loop, to_public())); }
};

TEST_F(ConnectionTest, AnswersABatchInOrder) {
  Batch batch;
  batch.with(add, 1, 2).with(add, 3, 4);
  const std::vector<Rows> rows = run(connection->run(std::move(batch)));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].get<int32_t>(0, 0), 3);
  EXPECT_EQ(rows[1].get<int32_t>(0, 0), 7);
}

Task<int64_t> sum_of_many(Connection& connection, int batches) {
  std::vector<Task<Rows>> answers;
  answers.reserve(static_cast<size_t>(batches));
  for (int i = 0; i < batches; ++i) answers.push_back(connection.run_one(add, Params(i, 0)));
  EXPECT_EQ(connection.in_flight() + connection.waiting(), static_cast<size_t>(batches));
  int64_t sum = 0;
  for (Task<Rows>& answer : answers) {
    const Rows rows = co_await answer;
    sum += rows.get<int64_t>(0, 0);
  }
  co_return sum;
}

TEST_F(ConnectionTest, KeepsManyBatchesInFlightAndTheRestWaiting) {
  run(connection->run_one(add, Params(0, 0)));
  EXPECT_EQ(run(sum_of_many(*connection, 1000)), 499'500);
}

TEST_F(ConnectionTest, AFailingStatementUndoesItsOwnBatchOnly) {
  Batch poisoned;
  poisoned.with(insert, int64_t{1}).with(divide, 0).with(insert, int64_t{2});
  Task<std::vector<Rows>> first = connection->run(std::move(poisoned));
  Task<Rows> second = connection->run_one(insert, Params(int64_t{3}));
  const Error error = error_of(std::move(first));
  EXPECT_EQ(error.sqlstate(), "22012");
  EXPECT_EQ(error.kind(), Kind::item);
  EXPECT_NE(std::string(error.what()).find("test.divide"), std::string::npos) << error.what();
  EXPECT_EQ(run(std::move(second)).affected_rows(), 1);
  EXPECT_EQ(database.sql("select id from item"), "3");
}

TEST_F(ConnectionTest, NamesTheViolatedConstraint) {
  run(connection->run_one(insert, Params(int64_t{1})));
  const Error error = error_of(connection->run_one(insert, Params(int64_t{1})));
  EXPECT_EQ(error.kind(), Kind::item);
  EXPECT_EQ(error.constraint(), "item_pkey");
}

TEST_F(ConnectionTest, AnErrorAtCommitFailsTheBatch) {
  database.sql("alter table item add unique (id) deferrable initially deferred; insert into item values (7)");
  database.sql("alter table item drop constraint item_pkey");
  EXPECT_EQ(error_of(connection->run_one(insert, Params(int64_t{7}))).sqlstate(), "23505");
  EXPECT_EQ(run(connection->run_one(count)).get<int64_t>(0, 0), 1);
}

TEST_F(ConnectionTest, AStatementThatCannotBePreparedSaysWhy) {
  const Error error = error_of(connection->run_one(broken));
  EXPECT_EQ(error.sqlstate(), "42P01") << error.what();
  EXPECT_EQ(error_of(connection->run_one(broken)).sqlstate(), "42P01");
  EXPECT_EQ(run(connection->run_one(add, Params(1, 1))).get<int32_t>(0, 0), 2);
}

TEST_F(ConnectionTest, AStatementStaysPreparedWhenItsFirstBatchFails) {
  Batch failing;
  failing.with(divide, 0).with(add, 1, 1);
  error_of(connection->run(std::move(failing)));
  EXPECT_EQ(run(connection->run_one(add, Params(1, 1))).get<int32_t>(0, 0), 2);
  EXPECT_EQ(run(connection->execute("select count(*) from pg_prepared_statements")).get<int64_t>(0, 0), 2);
}

TEST_F(ConnectionTest, AStatementWhoseTableChangedIsPreparedAgain) {
  EXPECT_EQ(run(connection->run_one(star)).columns(), 1U);
  database.sql("alter table item add extra text");
  EXPECT_EQ(error_of(connection->run_one(star)).kind(), Kind::retry);
  EXPECT_EQ(run(connection->run_one(star)).columns(), 2U);
}

TEST_F(ConnectionTest, ALostConnectionLeavesSentBatchesUnknown) {
  std::optional<std::string> closed;
  connection->on_closed([&](const Error& error) { closed = error.what(); });
  Task<Rows> sleeping = connection->execute("select pg_sleep(600)");
  Task<Rows> behind = connection->run_one(add, Params(1, 1));
  std::thread killer([&] {
    database.wait_for("select count(*) from pg_stat_activity where query = 'select pg_sleep(600)'", "1");
    kill_backend(*connection);
  });
  EXPECT_EQ(error_of(std::move(sleeping)).kind(), Kind::unknown);
  EXPECT_EQ(error_of(std::move(behind)).kind(), Kind::unknown);
  killer.join();
  EXPECT_TRUE(closed);
  EXPECT_FALSE(connection->is_open());
  EXPECT_EQ(error_of(connection->run_one(add, Params(1, 1))).kind(), Kind::unavailable);
}

TEST_F(ConnectionTest, WhatWasNotSentIsUnavailableAfterALoss) {
  ConnectOptions narrow = to_public();
  narrow.in_flight_max = 1;
  narrow.waiting_max = 1;
  connection = run(Connection::open(loop, narrow));
  Task<Rows> sent = connection->execute("select pg_sleep(600)");
  Task<Rows> waiting = connection->run_one(add, Params(1, 1));
  Task<Rows> one_too_many = connection->run_one(add, Params(1, 1));
  EXPECT_EQ(error_of(std::move(one_too_many)).kind(), Kind::unavailable);
  connection->close();
  EXPECT_EQ(error_of(std::move(sent)).kind(), Kind::unknown);
  EXPECT_EQ(error_of(std::move(waiting)).kind(), Kind::unavailable);
}

TEST_F(ConnectionTest, AServerThatHangsIsGivenUp) {
  ConnectOptions impatient = to_public();
  impatient.response_timeout = 2s;
  connection = run(Connection::open(loop, impatient));
  EXPECT_EQ(error_of(connection->execute("select pg_sleep(600)")).kind(), Kind::unknown);
  EXPECT_FALSE(connection->is_open());
}

TEST_F(ConnectionTest, AStatementTimeoutMayBeRetried) {
  run(connection->execute("set statement_timeout = 10"));
  EXPECT_EQ(error_of(connection->execute("select pg_sleep(600)")).kind(), Kind::retry);
}

TEST_F(ConnectionTest, AServerThatBecameReadOnlyIsLeft) {
  run(connection->execute("set default_transaction_read_only = on"));
  EXPECT_EQ(error_of(connection->run_one(insert, Params(int64_t{1}))).kind(), Kind::unavailable);
  EXPECT_FALSE(connection->is_open());
}

TEST_F(ConnectionTest, CopyIsRefusedInsteadOfSpinning) {
  EXPECT_EQ(error_of(connection->execute("copy item to stdout")).kind(), Kind::unknown);
  EXPECT_FALSE(connection->is_open());
}

constexpr Statement echo{"test.echo", "select $1::text, pg_notify('echo', 'x')"};

Task<size_t> echo_many(Connection& connection, int batches, std::string text) {
  std::vector<Task<Rows>> answers;
  answers.reserve(static_cast<size_t>(batches));
  for (int i = 0; i < batches; ++i) answers.push_back(connection.run_one(echo, Params(text)));
  size_t bytes = 0;
  for (Task<Rows>& answer : answers) {
    const Rows rows = co_await answer;
    bytes += rows.get<std::string_view>(0, 0).size();
  }
  co_return bytes;
}

TEST_F(ConnectionTest, FortyMegabytesBothWaysDoNotDeadlock) {
  EXPECT_EQ(run(echo_many(*connection, 200, std::string(200'000, 'x'))), 40'000'000U);
}

TEST_F(ConnectionTest, NotificationsArriveBetweenAnswers) {
  std::string seen;
  connection->on_notification([&](std::string_view channel, std::string_view payload) {
    seen.append(channel).append(":").append(payload).append(";");
  });
  run(connection->execute("listen echo"));
  run(connection->run_one(echo, Params("a")));
  // A notification is sent at the end of its transaction, so before the next result.
  run(connection->execute("select 1"));
  EXPECT_EQ(seen, "echo:x;");
}

Task<void> drop_an_answer(Connection& connection) {
  {
    Task<Rows> dropped = connection.run_one(insert, Params(int64_t{1}));
  }
  co_await connection.execute("select 1");
}

TEST_F(ConnectionTest, ADroppedTaskStillRuns) {
  run(drop_an_answer(*connection));
  EXPECT_EQ(database.sql("select id from item"), "1");
}

TEST_F(ConnectionTest, TheSessionIsSetUp) {
  ConnectOptions engine = ConnectOptions::engine(database.url());
  engine.lock_timeout = 2s;
  engine.synchronous_commit = "off";
  connection = run(Connection::open(loop, engine));
  const auto setting = [&](const std::string& name) {
    return run(connection->execute("select current_setting($1::text)", Params(name))).get<std::string>(0, 0);
  };
  EXPECT_EQ(setting("default_transaction_isolation"), "read committed");
  EXPECT_EQ(setting("statement_timeout"), "30s");
  EXPECT_EQ(setting("idle_in_transaction_session_timeout"), "30s");
  EXPECT_EQ(setting("lock_timeout"), "2s");
  EXPECT_EQ(setting("plan_cache_mode"), "force_generic_plan");
  EXPECT_EQ(setting("jit"), "off");
  EXPECT_EQ(setting("search_path"), "postrider");
  EXPECT_EQ(setting("TimeZone"), "UTC");
  EXPECT_EQ(setting("client_encoding"), "UTF8");
  EXPECT_EQ(setting("application_name"), "postrider");
  EXPECT_EQ(setting("synchronous_commit"), "off");
  EXPECT_EQ(connection->server().timeline.size(), 8U);
  EXPECT_GE(connection->server().version, 140000);
}

TEST_F(ConnectionTest, ADatabaseThatIsNotThereIsUnavailable) {
  ConnectOptions wrong = options();
  wrong.url = support::Cluster::get().url("no_such_database");
  const Error error = error_of(Connection::open(loop, wrong));
  EXPECT_EQ(error.kind(), Kind::unavailable);
  EXPECT_NE(std::string(error.what()).find("no_such_database"), std::string::npos) << error.what();
}

}  // namespace
}  // namespace postrider::pg
