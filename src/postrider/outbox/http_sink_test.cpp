#include "postrider/outbox/http_sink.hpp"

#include <gtest/gtest.h>

namespace postrider::outbox {
namespace {

using Kind = SinkResult::Kind;

TEST(HttpSink, AnItemHasItsDataByteForByteAndOnlyWhatWasGiven) {
  publish::NewEvent event;
  event.tenant_id = "acme";
  event.type = "order.paid";
  event.id = "evt_1";
  event.data = "{\"n\": 1.50, \"text\":\"\\u0000\"}";
  EXPECT_EQ(item_json(event),
            "{\"tenant_id\":\"acme\",\"type\":\"order.paid\",\"id\":\"evt_1\",\"data\":{\"n\": 1.50, "
            "\"text\":\"\\u0000\"}}");
}

TEST(HttpSink, EachItemOfTheAnswerIsJudgedByItsStatus) {
  const auto outcomes = read_outcomes(
      R"([{"status":202,"id":"a"},{"status":200},{"status":409,"detail":"used before"},)"
      R"({"status":422,"detail":"unfit","errors":[{"pointer":"/3/type","detail":"is required"}]},)"
      R"({"status":429,"detail":"too fast"},{"status":503},7])",
      7);
  ASSERT_TRUE(outcomes);
  const std::vector<Kind> wanted = {Kind::published, Kind::published, Kind::rejected, Kind::rejected,
                                    Kind::throttled, Kind::later,     Kind::later};
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ((*outcomes)[i].kind, wanted[i]) << i;
  EXPECT_EQ((*outcomes)[3].detail, "unfit /3/type is required");
}

TEST(HttpSink, AnAnswerToAnotherNumberOfItemsIsNone) {
  EXPECT_FALSE(read_outcomes("[]", 1));
  EXPECT_FALSE(read_outcomes("{}", 1));
  EXPECT_FALSE(read_outcomes("<html>", 1));
}

}  // namespace
}  // namespace postrider::outbox
