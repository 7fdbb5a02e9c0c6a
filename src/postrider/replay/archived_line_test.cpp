#include "postrider/replay/archived_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postrider::replay {
namespace {

using testing::HasSubstr;

TEST(ArchivedLine, AnEventOrARowOfAnOutboxIsTaken) {
  EXPECT_EQ(fault_of_line(R"({"tenant_id":"acme","type":"a.b","body":"{}","public_id":null})"), "");
  EXPECT_EQ(fault_of_line(R"({"tenant_id":"postrider","type":"outbox.stuck","body":"{}"})"), "");
  EXPECT_EQ(fault_of_line(R"({"tenant_id":"acme","type":"a.b","data":"[1]","processed_at":"2026-01-01"})"),
            "");
}

TEST(ArchivedLine, WhatBreaksARuleOfAllEventsIsRefusedWithAReason) {
  EXPECT_THAT(fault_of_line("{"), HasSubstr("not a JSON object"));
  EXPECT_THAT(fault_of_line("[1]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(fault_of_line(R"({"tenant_id":7,"type":"a.b"})"), HasSubstr("tenant_id is not text"));
  EXPECT_THAT(fault_of_line(R"({"tenant_id":"acme","type":"a b"})"), HasSubstr("type must"));
  EXPECT_THAT(fault_of_line(R"({"tenant_id":"acme","type":"a","public_id":"x\r\ny: z"})"),
              HasSubstr("id must"));
  EXPECT_THAT(fault_of_line(R"({"tenant_id":"acme","type":"a","traceparent":"x\ny"})"),
              HasSubstr("traceparent must"));
  EXPECT_THAT(fault_of_line(R"({"tenant_id":"acme","type":"a","body":"\u0000"})"), HasSubstr("stored"));
  EXPECT_THAT(fault_of_line(R"({"tenant_id":"postrider","type":"a","data":"1","processed_at":"2026-01-01"})"),
              HasSubstr("reserved"));
  EXPECT_THAT(fault_of_line(R"({"tenant_id":"acme","type":"a","data":"no","processed_at":"2026-01-01"})"),
              HasSubstr("data is not JSON"));
}

}  // namespace
}  // namespace postrider::replay
