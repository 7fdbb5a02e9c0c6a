// Storing messages without a database.
#include "postrider/inbox/receiver.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "support/database.hpp"
#include "support/run.hpp"
#include "support/stopped_process.hpp"

namespace postrider::inbox {
namespace {

using std::chrono::milliseconds;

runtime::Task<void> store_into(Receiver& receiver, std::string key, std::vector<Stored>& answers) {
  NewMessage message;
  message.source_id = "stripe";
  message.key = std::move(key);
  message.headers = "{}";
  message.body = "{}";
  auto task = receiver.store(std::move(message));
  const Stored answer = co_await task;
  answers.push_back(answer);
}

runtime::Task<void> store_many(Receiver& receiver, int count, std::vector<Stored>& answers) {
  runtime::TaskGroup group;
  for (int i = 0; i < count; ++i) group.spawn(store_into(receiver, std::to_string(i), answers));
  co_await group.join();
}

TEST(Receiver, WhoWaitsBehindAFailedFlushIsRefusedInTheSameTime) {
  runtime::Loop loop;
  pg::LinkOptions nowhere;
  nowhere.connect.url = "host=/nowhere";
  pg::Link link(loop, nowhere);
  model::IdSource ids;
  ids.synchronise(1, base::wall_now(), base::BootClock::now());
  telemetry::Metrics metrics;
  ReceiverOptions options{.give_up_after = milliseconds(500)};
  options.limits.items_max = 1;
  Receiver receiver(loop, link, ids, metrics, options);
  link.start();

  std::vector<Stored> answers;
  const auto begun = base::BootClock::now();
  support::run(loop, store_many(receiver, 20, answers));
  EXPECT_LT(base::BootClock::now() - begun, std::chrono::seconds(8)) << "one after the other takes 10";
  EXPECT_EQ(answers, std::vector<Stored>(20, Stored::unavailable));

  support::run(loop, receiver.stop());
  support::run(loop, link.stop());
}

TEST(Receiver, AServerThatHangsIsGivenUpAtTheDeadlineAndTheMessageIsStoredOnce) {
  support::Database db;
  db.sql("insert into source (id, provider) values ('stripe', 'standard')");
  runtime::Loop loop;
  pg::LinkOptions on_database;
  on_database.connect = pg::ConnectOptions::engine(db.url());
  on_database.connect.response_timeout = pg::Milliseconds(0);
  pg::Link link(loop, on_database);
  model::IdSource ids;
  ids.synchronise(1, base::wall_now(), base::BootClock::now());
  telemetry::Metrics metrics;
  Receiver receiver(loop, link, ids, metrics, {.give_up_after = milliseconds(300)});
  link.start();
  support::run(loop, link.wait_up(base::BootClock::now() + std::chrono::seconds(60)));

  support::StoppedProcess backend(link.connection().server().backend_pid);
  std::vector<Stored> answers;
  support::run(loop, store_many(receiver, 1, answers));
  EXPECT_EQ(answers, std::vector<Stored>(1, Stored::unavailable));
  while (answers.back() == Stored::unavailable) support::run(loop, store_many(receiver, 1, answers));
  EXPECT_EQ(answers.back(), Stored::stored) << "on another connection";

  const std::string pid = std::to_string(link.lost_backends().front().pid);
  backend.resume();
  db.wait_for("select count(*) from pg_stat_activity where pid = " + pid, "0");
  EXPECT_EQ(db.sql("select count(*) from inbox"), "1");
  support::run(loop, receiver.stop());
  support::run(loop, link.stop());
}

}  // namespace
}  // namespace postrider::inbox
