// Deduplication by content: several messages of one batch, several nodes, and what a dropped message leaves
// behind.
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

#include "postrider/inbox/receiver.hpp"
#include "support/database.hpp"
#include "support/run.hpp"

namespace postrider::inbox {
namespace {

struct Sent {
  std::string id;
  std::string body;
  std::string topic = "";
};

struct ContentTest : testing::Test {
  ContentTest() : link(loop, link_options()) {
    ids.synchronise(1, base::wall_now(), base::BootClock::now());
    link.start();
    run(link.wait_up(base::BootClock::now() + std::chrono::seconds(30)));
  }
  ~ContentTest() override {
    run(receiver.stop());
    run(link.stop());
  }
  pg::LinkOptions link_options() {
    pg::LinkOptions options;
    options.connect.url = db.url();
    return options;
  }
  template <class T>
  T run(runtime::Task<T> task) {
    return support::run(loop, std::move(task));
  }

  runtime::Task<void> store_one(Sent sent, Stored& answer) {
    NewMessage message;
    message.source_id = "github";
    message.key = sent.id;
    message.content = Content{crypto::sha256(sent.body), sent.topic};
    message.headers = "{}";
    message.body = sent.body;
    answer = co_await receiver.store(std::move(message));
  }
  runtime::Task<void> store_all(const std::vector<Sent>& all, std::vector<Stored>& answers) {
    runtime::TaskGroup group;
    for (size_t i = 0; i < all.size(); ++i) group.spawn(store_one(all[i], answers[i]));
    co_await group.join();
  }
  // At once; all but the first become one batch.
  std::vector<Stored> store(const std::vector<Sent>& all) {
    std::vector<Stored> answers(all.size());
    run(store_all(all, answers));
    return answers;
  }
  // In one batch: the first one keeps the link busy until then.
  std::vector<Stored> store_together(std::vector<Sent> all) {
    all.insert(all.begin(), {"front " + std::to_string(++fronts), "front " + std::to_string(fronts)});
    auto answers = store(all);
    answers.erase(answers.begin());
    return answers;
  }
  std::string stored(const std::string& body) {
    return db.sql("select count(*) from inbox where body = '" + body + "'");
  }

  support::Database db;
  runtime::Loop loop;
  pg::Link link;
  model::IdSource ids;
  telemetry::Metrics metrics;
  Receiver receiver{loop, link, ids, metrics, {}};
  int fronts = 0;
};

using enum Stored;
using Answers = std::vector<Stored>;

TEST_F(ContentTest, AnotherIdWithTheSameContentIsNotStored) {
  EXPECT_EQ(store({{"1", "a"}}), Answers{Stored::stored});
  EXPECT_EQ(store({{"2", "a"}}), Answers{duplicate_content});
  EXPECT_EQ(store({{"1", "a"}}), Answers{duplicate}) << "a redelivery";
  EXPECT_EQ(store({{"3", "b"}}), Answers{Stored::stored});
  EXPECT_EQ(db.sql("select count(*), count(distinct q.id) from inbox_queue q where q.bucket >= 0"), "2|2");
}

TEST_F(ContentTest, EqualContentInOneBatchIsStoredOnce) {
  EXPECT_EQ(store_together({{"1", "a"}, {"2", "a"}, {"3", "a"}, {"4", "b"}}),
            (Answers{Stored::stored, duplicate_content, duplicate_content, Stored::stored}));
  EXPECT_EQ(stored("a"), "1");
}

// Ids that are not signed can be guessed: one that came with a recorded request is still free.
TEST_F(ContentTest, AnIdThatCameWithOldContentIsNotUsedUp) {
  store({{"1", "a"}});
  EXPECT_EQ(store({{"2", "a"}}), Answers{duplicate_content});
  EXPECT_EQ(db.sql("select string_agg(key, ',') from inbox_key"), "1");
  EXPECT_EQ(store({{"2", "b"}}), Answers{Stored::stored});
  EXPECT_EQ(store_together({{"3", "a"}, {"3", "c"}}), (Answers{duplicate_content, overloaded}))
      << "sent again, it finds its id free";
  EXPECT_EQ(store({{"3", "c"}}), Answers{Stored::stored});
}

TEST_F(ContentTest, ContentThatCameUnderAUsedIdIsNotUsedUp) {
  store({{"1", "a"}});
  EXPECT_EQ(store({{"1", "b"}}), Answers{duplicate});
  EXPECT_EQ(store({{"2", "b"}}), Answers{Stored::stored});
}

TEST_F(ContentTest, OneBodyMayHaveEightTopics) {
  const auto with_topic = [](int n) {
    return Sent{"id " + std::to_string(n), "order", "topic " + std::to_string(n)};
  };
  EXPECT_EQ(store({with_topic(0)}), Answers{Stored::stored});
  EXPECT_EQ(store({{"again", "order", "topic 0"}}), Answers{duplicate_content});
  std::vector<Sent> many;
  for (int n = 1; n < 12; ++n) many.push_back(with_topic(n));
  Answers expected(7, Stored::stored);
  expected.resize(11, duplicate_content);
  EXPECT_EQ(store_together(many), expected);
  EXPECT_EQ(store({with_topic(99)}), Answers{duplicate_content});
  EXPECT_EQ(stored("order"), "8");
  EXPECT_EQ(db.sql("select count(*) from inbox_content c where c.id = any (c.ids)"), "1")
      << "kept as long as the newest message";
}

// Another node is storing the same content, and has not committed yet.
TEST_F(ContentTest, ANodeWaitsForAnotherThatIsStoringTheSameContent) {
  for (const bool commits : {true, false}) {
    const std::string body = commits ? "a" : "b";
    support::SyncSql other(db.url());
    other("begin");
    other("insert into inbox_content (source_id, digest, topics, ids, id) select 'github', sha256('" + body +
          "'), '{\"\"}', array[i], i from gen_random_uuid() i");
    auto ended = std::async(std::launch::async, [&] {
      db.wait_for(
          "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = "
          "'Lock'",
          "1");
      other(commits ? "commit" : "rollback");
    });
    EXPECT_EQ(store({{"of " + body, body}}), Answers{commits ? duplicate_content : Stored::stored});
    ended.get();
  }
}

}  // namespace
}  // namespace postrider::inbox
