// The names of prepared statements, and sending statements through a pooler that keeps none.
#include <gmock/gmock.h>

#include "postrider/pg/pgtest_fixture.hpp"
#include "postrider/pg/session.hpp"

namespace postrider::pg {
namespace {

using testing::MatchesRegex;

constexpr Statement add{"test.add", "select $1::int + $2::int"};
constexpr Statement subtract{"test.add", "select $1::int - $2::int"};  // another version's text
constexpr Statement divide{"test.divide", "select 1 / $1::int"};
constexpr size_t compared_bytes = 63;  // of a name, by Postgres

struct StatementNamesTest : ConnectedTest {
  std::string prepared() {
    return run(connection->execute("select coalesce(string_agg(name, ' '), '') from pg_prepared_statements "
                                   "where name like 'test.%'"))
        .get<std::string>(0, 0);
  }
  void open_without_names() {
    ConnectOptions chosen = options();
    chosen.keeps_statements = false;
    connection = run(Connection::open(loop, chosen));
  }
};

TEST_F(StatementNamesTest, ANameContainsAHashOfTheText) {
  run(connection->run_one(add, Params(1, 2)));
  EXPECT_THAT(prepared(), MatchesRegex("test\\.add\\.[0-9a-f]{16}"));
  EXPECT_NE(server_name_of(add, {}), server_name_of(subtract, {}));
  EXPECT_NE(server_name_of(add, {20}), server_name_of(add, {23}));
  EXPECT_EQ(server_name_of(add, {20, 23}), server_name_of(add, {20, 23}));
}

TEST_F(StatementNamesTest, ALongNameKeepsItsHash) {
  const std::string name(100, 'n');
  const std::string first = server_name_of({name.c_str(), "select 1"}, {});
  const std::string second = server_name_of({name.c_str(), "select 2"}, {});
  EXPECT_LE(first.size(), compared_bytes);
  EXPECT_NE(first, second);
}

TEST_F(StatementNamesTest, WithoutNamesNothingIsPreparedAndResultsAreTheSame) {
  open_without_names();
  Batch batch;
  batch.with(add, 1, 2).with(add, 3, 4).with(divide, 1);
  const std::vector<Rows> rows = run(connection->run(std::move(batch)));
  EXPECT_EQ(rows[0].get<int32_t>(0, 0), 3);
  EXPECT_EQ(rows[1].get<int32_t>(0, 0), 7);
  EXPECT_EQ(rows[2].get<int32_t>(0, 0), 1);
  EXPECT_EQ(prepared(), "");
}

TEST_F(StatementNamesTest, WithoutNamesAnErrorStillNamesTheStatement) {
  open_without_names();
  const Error error = error_of(connection->run_one(divide, Params(0)));
  EXPECT_EQ(error.sqlstate(), "22012");
  EXPECT_THAT(error.what(), testing::HasSubstr("test.divide"));
}

}  // namespace
}  // namespace postrider::pg
