#include "postrider/publish/event_request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "postrider/publish/envelope.hpp"

namespace postrider::publish {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

auto complaint(std::string pointer) {
  return Field(&FieldError::pointer, std::move(pointer));
}

TEST(ParseEvent, KeepsTheBytesOfDataAsTheyCame) {
  const std::string data = R"({ "n":123456789012345678901234567890.10e+05,"z":"\u0000\/\uD83D" , "a":[ ] })";
  const std::string body = R"({"data":)" + data + R"( ,"type":"invoice.paid"})";
  const auto event = parse_event(body, "t1");
  ASSERT_TRUE(event.ok());
  EXPECT_EQ(event->data, data);
  EXPECT_EQ(event->tenant_id, "t1");
  EXPECT_EQ(
      envelope(*event, "evt_1", "2026-04-08T10:15:30Z"),
      R"({"id":"evt_1","type":"invoice.paid","tenant_id":"t1","created_at":"2026-04-08T10:15:30Z","data":)" +
          data + "}");
}

TEST(ParseEvent, ReadsEveryField) {
  const auto event = parse_event(
      R"({"type":"a","data":null,"id":"mine-1","version":"2026-04-08","occurred_at":"2026-04-08T12:15:30+02:00","subject":"inv \u00e4"})",
      "t1");
  ASSERT_TRUE(event.ok());
  EXPECT_EQ(event->id, "mine-1");
  EXPECT_EQ(event->version, "2026-04-08");
  EXPECT_EQ(event->occurred_at, base::parse_rfc3339("2026-04-08T10:15:30Z"));
  EXPECT_EQ(event->subject, "inv ä");
  EXPECT_EQ(event->data, "null");
}

TEST(ParseEvent, CountsNullAsAbsentExceptForData) {
  const auto event = parse_event(R"({"type":"a","data":1,"id":null,"version":null,"subject":null})", "t1");
  ASSERT_TRUE(event.ok());
  EXPECT_FALSE(event->id || event->version || event->subject);
}

TEST(ParseEvent, NamesEveryBadFieldAtOnce) {
  const auto event =
      parse_event(R"({"type":"a..b","id":"no spaces","occurred_at":"yesterday","x/y":1,"subject":7})", "t1");
  ASSERT_FALSE(event.ok());
  EXPECT_EQ(event.error().status, 422);
  EXPECT_THAT(event.error().errors, testing::UnorderedElementsAre(
                                        complaint("/x~1y"), complaint("/type"), complaint("/data"),
                                        complaint("/id"), complaint("/subject"), complaint("/occurred_at")));
}

TEST(ParseEvent, RefusesADuplicateKeyHoweverItIsSpelled) {
  const auto event = parse_event(R"({"type":"a","data":1,"\u0074ype":"b"})", "t1");
  ASSERT_FALSE(event.ok());
  EXPECT_THAT(event.error().errors, ElementsAre(complaint("/type")));
}

TEST(ParseEvent, RefusesATenantInTheBodyAndTextThatCannotBeStored) {
  const auto event = parse_event(R"({"type":"a","data":1,"tenant_id":"t2","subject":"a\u0000b"})", "t1");
  ASSERT_FALSE(event.ok());
  EXPECT_THAT(event.error().errors,
              testing::UnorderedElementsAre(complaint("/tenant_id"), complaint("/subject")));
}

TEST(ParseEvent, TellsBadJsonFromABadEvent) {
  for (const char* text :
       {"", "{", "{\"type\":\"a\",\"data\":1} x", "\"\xff\"", "{\"type\":\"a\",\"data\":[}"}) {
    const auto event = parse_event(text, "t1");
    ASSERT_FALSE(event.ok()) << text;
    EXPECT_EQ(event.error().status, 400) << text;
  }
  const auto event = parse_event("[1]", "t1");
  ASSERT_FALSE(event.ok());
  EXPECT_EQ(event.error().status, 422);
  EXPECT_THAT(event.error().errors, ElementsAre(complaint("")));
}

TEST(ParseBatch, KeepsTheGoodOnesWhenOthersAreBad) {
  const auto batch = parse_batch(
      R"([{"tenant_id":"t1","type":"a","data":{}}, 7, {"type":"a","data":1}, {"tenant_id":"t2","type":"b","data":2}])",
      10);
  ASSERT_TRUE(batch.ok());
  ASSERT_EQ(batch->size(), 4u);
  EXPECT_TRUE((*batch)[0].ok());
  EXPECT_THAT((*batch)[1].error().errors, ElementsAre(complaint("/1")));
  EXPECT_THAT((*batch)[2].error().errors, ElementsAre(complaint("/2/tenant_id")));
  EXPECT_EQ((*batch)[3]->tenant_id, "t2");
}

TEST(ParseBatch, IsRefusedAsAWholeWhenItIsNotAnArrayOrTooLong) {
  EXPECT_EQ(parse_batch("{}", 10).error().status, 422);
  EXPECT_EQ(parse_batch("[1,2,3]", 2).error().status, 422);
  EXPECT_EQ(parse_batch("[1,2", 2).error().status, 400);
  EXPECT_THAT(*parse_batch("[]", 2), IsEmpty());
}

TEST(Envelope, HasAVersionOnlyWhenThereIsOne) {
  NewEvent event;
  event.tenant_id = "t1";
  event.type = "a";
  event.data = "{}";
  event.version = "v\"1";
  EXPECT_EQ(
      envelope(event, "x", "2026-04-08T10:15:30Z"),
      R"({"id":"x","type":"a","version":"v\"1","tenant_id":"t1","created_at":"2026-04-08T10:15:30Z","data":{}})");
  EXPECT_EQ(publish_response(event, "x", "2026-04-08T10:15:30Z", 3),
            R"({"id":"x","type":"a","tenant_id":"t1","created_at":"2026-04-08T10:15:30Z","deliveries":3})");
}

TEST(RequestHash, CoversWhatThePublisherSaid) {
  NewEvent event;
  event.type = "a";
  event.data = "{}";
  const auto first = request_hash(event);
  event.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  EXPECT_EQ(request_hash(event), first);
  event.version = "";
  EXPECT_NE(request_hash(event), first);
  event.version.reset();
  event.data = "{ }";
  EXPECT_NE(request_hash(event), first);
}

TEST(Traceparent, IsTakenOnlyInItsExactForm) {
  EXPECT_TRUE(is_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
  EXPECT_FALSE(is_traceparent("00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
  EXPECT_FALSE(is_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\nx: y"));
}

}  // namespace
}  // namespace postrider::publish
