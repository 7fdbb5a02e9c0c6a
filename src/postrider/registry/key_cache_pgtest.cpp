#include "postrider/registry/key_cache.hpp"

#include <chrono>
#include <string>

#include "postrider/registry/pgtest_fixture.hpp"

namespace postrider::registry {
namespace {

using std::chrono::seconds;

struct CachedKeys : RegistryTest {};

TEST_F(CachedKeys, ARevokedKeyLeavesTheCacheWithTheControlLog) {
  const std::string first(32, 'a');
  run(ensure_admin_key(link, first));
  KeyCache cache;
  const auto now = base::BootClock::now();
  const auto hash = hash_key(first);
  const auto found = run(find_key(link, hash));
  cache.keep(hash, {found, now, cache.generation()});
  EXPECT_EQ(cache.find(hash, now).principal, found->principal);
  EXPECT_FALSE(cache.find(hash, now + seconds(6)).is_known);

  const auto before = cache.generation();
  const auto seen = run(current_version(link));
  run(ensure_admin_key(link, std::string(32, 'b')));
  cache.apply(run(read_changes(link, seen)));
  EXPECT_FALSE(cache.find(hash, now).is_known);
  cache.keep(hash, {found, now, before});
  EXPECT_FALSE(cache.find(hash, now).is_known) << "what was looked up before the change is not kept";
}

TEST_F(CachedKeys, ACachedKeyStopsWhenItExpires) {
  const std::string first(32, 'a');
  run(ensure_admin_key(link, first));
  sql("update postrider.api_key set expires_at = now() + interval '3 seconds'");
  const auto hash = hash_key(first);
  const auto now = base::BootClock::now();
  const auto found = run(find_key(link, hash));
  ASSERT_TRUE(found);
  ASSERT_TRUE(found->expires_in);
  KeyCache cache;
  cache.keep(hash, {found, now, cache.generation()});
  const auto end = now + *found->expires_in;
  EXPECT_TRUE(cache.find(hash, end - std::chrono::microseconds(1)).is_known);
  EXPECT_FALSE(cache.find(hash, end).is_known);
  sql("update postrider.api_key set expires_at = 'infinity'");
  EXPECT_FALSE(run(find_key(link, hash))->expires_in);
}

TEST_F(CachedKeys, AKeyThatAnotherTransactionHasLockedIsFoundWithoutWaiting) {
  const std::string first(32, 'a');
  run(ensure_admin_key(link, first));
  sql("update postrider.api_key set last_used_at = null");
  sql("begin");
  sql("select id from postrider.api_key for update");
  EXPECT_TRUE(run(find_key(link, hash_key(first))));
  sql("rollback");
}

TEST(KeyCache, RemembersUnknownKeysForAMoment) {
  KeyCache cache;
  const auto now = base::BootClock::now();
  const auto hash = hash_key("made up");
  EXPECT_FALSE(cache.find(hash, now).is_known);
  cache.keep(hash, {std::nullopt, now, cache.generation()});
  EXPECT_TRUE(cache.find(hash, now).is_known);
  EXPECT_FALSE(cache.find(hash, now).principal);
  EXPECT_FALSE(cache.find(hash, now + seconds(1)).is_known);

  Change change;
  change.kind = ChangeKind::key;
  cache.apply({&change, 1});
  EXPECT_FALSE(cache.find(hash, now).is_known) << "it may have been created";
}

TEST(KeyCache, MadeUpKeysNeitherGrowItNorPushKnownOnesOut) {
  KeyCache cache({.unknown_max = 10});
  const auto now = base::BootClock::now();
  const auto known = hash_key("known");
  cache.keep(known, {FoundKey{}, now, cache.generation()});
  for (int i = 0; i < 1'000; ++i)
    cache.keep(hash_key("made up " + std::to_string(i)), {std::nullopt, now, cache.generation()});
  EXPECT_LE(cache.unknown_size(), 10u);
  EXPECT_TRUE(cache.find(known, now).principal);
}

}  // namespace
}  // namespace postrider::registry
