#include "postrider/pg/connection.hpp"

#include <gtest/gtest.h>

#include "support/database.hpp"
#include "support/run.hpp"

namespace postrider::pg {
namespace {

using runtime::Loop;
using runtime::Task;
using support::Database;
using support::run;

constexpr Statement add{"test.add", "select $1::int + $2::int"};

struct Connected : testing::Test {
  Connected() : connection(run(loop, Connection::open(loop, options()))) {}
  ConnectOptions options() {
    ConnectOptions chosen;
    chosen.url = database.url();
    return chosen;
  }
  Database database{Database::Schema::none};
  Loop loop;
  std::unique_ptr<Connection> connection;
};

TEST_F(Connected, AnswersABatchInOrder) {
  Batch batch;
  batch.with(add, 1, 2).with(add, 3, 4);
  const auto rows = run(loop, connection->run(std::move(batch)));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].get<int32_t>(0, 0), 3);
  EXPECT_EQ(rows[1].get<int32_t>(0, 0), 7);
}

}  // namespace
}  // namespace postrider::pg
