#include "postrider/pg/pgtest_fixture.hpp"

namespace postrider::pg {
namespace {

using runtime::Task;

constexpr Statement insert{"test.insert", "insert into public.item (id) values ($1::bigint)"};
constexpr Statement count{"test.count", "select count(*) from public.item"};

Batch insert_batch(int64_t id) {
  return Batch(insert, Params(id));
}

struct TransactionTest : ConnectedTest {
  TransactionTest() { database.sql("create table public.item (id bigint primary key)"); }
  std::string items() {
    return database.sql("select string_agg(id::text, ',' order by id) from public.item");
  }
};

Task<void> insert_twice(Connection& connection, bool is_committing) {
  Transaction transaction = co_await connection.begin();
  co_await transaction.run(insert_batch(1));
  co_await transaction.run(insert_batch(2));
  if (is_committing) co_await transaction.commit();
}

TEST_F(TransactionTest, CommitKeepsWhatSeveralRoundTripsDid) {
  run(insert_twice(*connection, true));
  EXPECT_EQ(items(), "1,2");
}

TEST_F(TransactionTest, DestructionRollsBackAndLeavesTheConnectionClean) {
  run(insert_twice(*connection, false));
  EXPECT_EQ(run(connection->run_one(count)).get<int64_t>(0, 0), 0);
  EXPECT_EQ(run(connection->run_one(insert, Params(int64_t{5}))).affected_rows(), 1);
  EXPECT_EQ(items(), "5");
}

Task<void> roll_back(Connection& connection) {
  Transaction transaction = co_await connection.begin();
  co_await transaction.run(insert_batch(1));
  co_await transaction.rollback();
}

TEST_F(TransactionTest, RollbackUndoes) {
  run(roll_back(*connection));
  EXPECT_EQ(items(), "");
}

Task<std::string> others_wait(Connection& connection) {
  Transaction transaction = co_await connection.begin();
  Task<Rows> outside = connection.run_one(count);
  co_await transaction.run(insert_batch(1));
  const bool was_held_back = connection.waiting() == 1;
  co_await transaction.commit();
  const Rows rows = co_await outside;
  co_return std::string(was_held_back ? "held back, then saw " : "not held back, saw ") +
      std::to_string(rows.get<int64_t>(0, 0));
}

TEST_F(TransactionTest, OtherBatchesWaitForTheEnd) {
  EXPECT_EQ(run(others_wait(*connection)), "held back, then saw 1");
}

Task<void> commit_after_failure(Connection& connection) {
  Transaction transaction = co_await connection.begin();
  co_await transaction.run(insert_batch(1));
  try {
    co_await transaction.run(insert_batch(1));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Kind::item);
  }
  co_await transaction.commit();
}

TEST_F(TransactionTest, CommitOfAFailedTransactionThrows) {
  EXPECT_EQ(error_of(commit_after_failure(*connection)).kind(), Kind::other);
  EXPECT_EQ(items(), "");
}

TEST_F(TransactionTest, AnUnusedTransactionSendsNothing) {
  const auto unused = [](Connection& of) -> Task<void> {
    Transaction transaction = co_await of.begin();
    co_await transaction.commit();
  };
  run(unused(*connection));
  EXPECT_EQ(run(connection->run_one(count)).get<int64_t>(0, 0), 0);
}

Task<void> lose_the_connection(Connection& connection) {
  Transaction transaction = co_await connection.begin();
  co_await transaction.run(insert_batch(1));
  connection.close();
  try {
    co_await transaction.run(insert_batch(2));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Kind::unavailable);
  }
  co_await transaction.commit();
}

TEST_F(TransactionTest, ALostConnectionRollsBack) {
  EXPECT_EQ(error_of(lose_the_connection(*connection)).kind(), Kind::unavailable);
  EXPECT_EQ(items(), "");
}

Task<void> run_script(Connection& connection, std::string text) {
  // Something in flight, which the script has to wait for.
  Task<Rows> before = connection.run_one(count);
  Transaction transaction = co_await connection.begin();
  co_await transaction.run(insert_batch(1));
  co_await transaction.script(text);
  co_await transaction.run(insert_batch(4));
  co_await transaction.commit();
  co_await before;
}

TEST_F(TransactionTest, AScriptRunsManyStatements) {
  run(run_script(*connection, "insert into public.item values (2); insert into public.item values (3);"));
  EXPECT_EQ(items(), "1,2,3,4");
  EXPECT_EQ(run(connection->run_one(count)).get<int64_t>(0, 0), 4);
}

TEST_F(TransactionTest, AFailingScriptRollsBackAndTheConnectionGoesOn) {
  const Error error = error_of(
      run_script(*connection, "insert into public.item values (2); insert into public.item values (2)"));
  EXPECT_EQ(error.sqlstate(), "23505");
  EXPECT_EQ(run(connection->run_one(insert, Params(int64_t{3}))).affected_rows(), 1);
  EXPECT_EQ(items(), "3");
}

}  // namespace
}  // namespace postrider::pg
