#include "postrider/inbox/source_cache.hpp"

#include <gtest/gtest.h>

#include <string>

#include "support/database.hpp"
#include "support/run.hpp"

namespace postrider::inbox {
namespace {

struct SourceCacheTest : testing::Test {
  SourceCacheTest() : link(loop, options(database.url())) {
    link.start();
    support::run(loop, link.wait_up(base::BootClock::now() + std::chrono::seconds(30)));
    database.sql("insert into postrider.source (id, provider) values ('known', 'github')");
  }
  ~SourceCacheTest() override { support::run(loop, link.stop()); }

  static pg::LinkOptions options(const std::string& url) {
    pg::LinkOptions chosen;
    chosen.connect.url = url;
    return chosen;
  }
  SourcePtr load(const std::string& id) { return support::run(loop, cache.load(link, keys, id)); }

  support::Database database;
  runtime::Loop loop;
  pg::Link link;
  crypto::MasterKeys keys = *crypto::MasterKeys::parse(crypto::MasterKeys::generate());
  SourceCache cache;
};

TEST_F(SourceCacheTest, RemembersUnknownIdsForAMoment) {
  const auto now = base::BootClock::now();
  EXPECT_FALSE(cache.find("nowhere", now).is_known);
  EXPECT_FALSE(load("nowhere"));
  EXPECT_TRUE(cache.find("nowhere", now).is_known);
  EXPECT_FALSE(cache.find("nowhere", base::BootClock::now() + SourceCache::kUnknownLifetime).is_known);
  EXPECT_TRUE(cache.find(std::string(8'000, 'x'), now).is_known) << "no source has such an id";

  registry::Change change;
  change.kind = registry::ChangeKind::source;
  cache.apply({&change, 1});
  EXPECT_FALSE(cache.find("nowhere", now).is_known) << "it may have been created";
}

TEST_F(SourceCacheTest, MadeUpIdsNeitherGrowItNorPushKnownOnesOut) {
  const auto now = base::BootClock::now();
  ASSERT_TRUE(load("known"));
  for (size_t i = 0; i < SourceCache::kUnknownMax + 10; ++i) load("made-up-" + std::to_string(i));
  EXPECT_LE(cache.unknown_size(), SourceCache::kUnknownMax);
  EXPECT_EQ(cache.size(), 1u);
  EXPECT_TRUE(cache.find("known", now).source);
}

}  // namespace
}  // namespace postrider::inbox
