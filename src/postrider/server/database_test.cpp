#include "postrider/server/database.hpp"

#include <gtest/gtest.h>

namespace postrider::server {
namespace {

TEST(UpgradeNote, NamesBothVersionsUntilTheServerIsRestarted) {
  EXPECT_EQ(
      upgrade_note(pg::ServerUpgrade{"15.18", "15.20"}),
      "The private Postgres runs version 15.18, but 15.20 is installed. If it is not restarted within a "
      "minute, restart postrider.");
  EXPECT_EQ(upgrade_note(std::nullopt), "");
}

}  // namespace
}  // namespace postrider::server
