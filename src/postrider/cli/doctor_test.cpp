#include "postrider/cli/doctor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postrider::cli {
namespace {

TEST(Doctor, ReportsAMinorUpgradeUnderTheRunningServer) {
  Findings findings;
  add_upgrade(findings, pg::ServerUpgrade{"15.18", "15.20"});
  const std::vector<Finding> found = findings.take();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].level, Finding::Level::problem);
  EXPECT_EQ(found[0].what, "the private Postgres runs version 15.18, but 15.20 is installed");
  EXPECT_THAT(found[0].advice, testing::HasSubstr("restart postrider"));
}

TEST(Doctor, SaysNothingAboutAnUpgradeWhenTheVersionsAreTheSame) {
  Findings findings;
  add_upgrade(findings, pg::compare_versions("15.18", "15.18"));
  EXPECT_TRUE(findings.take().empty());
}

}  // namespace
}  // namespace postrider::cli
