#include "postrider/model/event_rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "postrider/model/event_type.hpp"
#include "postrider/model/ids.hpp"

namespace postrider::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kTraceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

EventFields good() {
  return {.tenant_id = "acme",
          .type = "order.paid",
          .id = "order-1",
          .version = "v 2",
          .subject =
              "Stra\xc3\x9f"
              "e/1",
          .traceparent = kTraceparent,
          .occurred_at = base::parse_rfc3339("2020-02-03T04:05:06Z"),
          .written_at = base::parse_rfc3339("9999-12-31T23:59:59Z")};
}

std::vector<std::string> fields_at_fault(const EventFields& event) {
  std::vector<std::string> names;
  for (const EventError& fault : errors_of(event)) names.emplace_back(fault.field);
  return names;
}

TEST(EventRules, AGoodEventHasNoFaultAndNeedsOnlyTenantAndType) {
  EXPECT_THAT(errors_of(good()), IsEmpty());
  EXPECT_THAT(errors_of({.tenant_id = "a",
                         .type = "b",
                         .id = {},
                         .version = {},
                         .subject = {},
                         .traceparent = {},
                         .occurred_at = {},
                         .written_at = {}}),
              IsEmpty());
}

TEST(EventRules, EveryFieldIsChecked) {
  const std::string long_text(1 << 20, '.');
  EventFields event = good();
  event.tenant_id = "a\r\nb";
  event.type = long_text;
  event.id = "x\r\ncontent-length: 0";
  event.version = "";
  event.subject = std::string_view("a\0b", 3);
  event.traceparent = "x\ny";
  event.occurred_at = base::Timestamp::max();
  event.written_at = base::Timestamp::min();
  EXPECT_THAT(fields_at_fault(event), ElementsAre("tenant_id", "type", "id", "version", "subject",
                                                  "traceparent", "occurred_at", "created_at"));
  EXPECT_LT(to_text(errors_of(event)).size(), 1000u);
}

TEST(EventRules, TextMustBeUtf8WithoutNul) {
  for (const std::string_view bad : {std::string_view("\xff"), std::string_view("\xed\xa0\x80"),
                                     std::string_view("\0", 1), std::string_view("")}) {
    EventFields event = good();
    event.version = event.subject = bad;
    EXPECT_THAT(fields_at_fault(event), ElementsAre("version", "subject"));
  }
}

TEST(EventRules, OnlyPostriderPublishesToItsTenant) {
  EventFields event = good();
  event.tenant_id = kReservedTenant;
  EXPECT_THAT(fields_at_fault(event), ElementsAre("tenant_id"));
  EXPECT_THAT(to_text(errors_of(event)), HasSubstr("is reserved"));
  EXPECT_THAT(errors_of_form(event), IsEmpty()) << "its archived events can be brought back";
}

TEST(TenantId, TakesDotsColonsAndAtSignsButNotFirst) {
  for (const char* id : {"a", "acme", "org:7", "a.b@c", "_", "-x", "0"}) EXPECT_TRUE(is_tenant_id(id)) << id;
  EXPECT_TRUE(is_tenant_id(std::string(64, 'x')));
  EXPECT_FALSE(is_tenant_id(std::string(65, 'x')));
  for (const char* id : {"", ".a", ":a", "@a", "a b", "a/b", "a\n", "\xc3\xa4", "a\"b"})
    EXPECT_FALSE(is_tenant_id(id)) << id;
}

TEST(Pattern, NoneMatchesATypeThatIsTooLong) {
  EXPECT_THAT(patterns_matching(std::string(1 << 20, '.')), IsEmpty());
}

}  // namespace
}  // namespace postrider::model
