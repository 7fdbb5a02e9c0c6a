#include <gtest/gtest.h>

#include "postrider/base/encoding.hpp"
#include "postrider/base/result.hpp"
#include "postrider/base/time.hpp"
#include "postrider/base/uuid.hpp"

namespace postrider::base {
namespace {

TEST(Base64, RoundTripsEveryLength) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    const auto decoded = base64_decode(base64_encode(bytes));
    ASSERT_TRUE(decoded.has_value()) << i;
    EXPECT_EQ(*decoded, bytes);
    bytes += static_cast<char>(i * 7);
  }
}

TEST(Base64, RefusesWhatIsNotCanonical) {
  for (const char* text : {"A", "AA", "AAA", "A===", "AB==", "AAB=", "AA A", "AA-_", "=AAA", "AA=A"})
    EXPECT_FALSE(base64_decode(text).has_value()) << text;
  EXPECT_EQ(base64_decode(""), std::string());
  EXPECT_EQ(base64_decode("AA=="), std::string(1, '\0'));
}

TEST(Rfc3339, ReadsOffsetsAndFractionsAndPrintsUtc) {
  EXPECT_EQ(to_rfc3339(*parse_rfc3339("2026-04-08T10:15:30Z")), "2026-04-08T10:15:30Z");
  EXPECT_EQ(to_rfc3339(*parse_rfc3339("2026-04-08T12:15:30.25+02:00")), "2026-04-08T10:15:30.250000Z");
  EXPECT_EQ(to_rfc3339(*parse_rfc3339("2026-01-01T00:00:00.1234567-05:30")), "2026-01-01T05:30:00.123456Z");
}

TEST(Rfc3339, RefusesWhatIsNotATime) {
  for (const char* text :
       {"", "2026-04-08", "2026-02-30T00:00:00Z", "2026-04-08T10:15:30", "2026-04-08T25:00:00Z",
        "2026-04-08T10:15:30.Z", "2026-04-08T10:15:30+2:00", "2026-04-08T10:15:30Zx"})
    EXPECT_FALSE(parse_rfc3339(text).has_value()) << text;
}

TEST(JsonEscaping, EscapesControlsAndReplacesBrokenUtf8) {
  EXPECT_EQ(json_quoted("a\"b\\\n\t\r\x7f"), "\"a\\\"b\\\\\\n\\t\\r\\u007f\"");
  EXPECT_EQ(json_quoted("gr\xC3\xBC\xC3\x9F \xF0\x9F\x93\xAE"), "\"gr\xC3\xBC\xC3\x9F \xF0\x9F\x93\xAE\"");
  EXPECT_EQ(json_quoted("\xC3(\xED\xA0\x80"), "\"\xEF\xBF\xBD(\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(Uuid, RoundTripsBothForms) {
  const auto id = Uuid::from_hex("0192b6c0-0000-7abc-8def-0123456789ab");
  ASSERT_TRUE(id);
  EXPECT_EQ(id->text(), "0192b6c0-0000-7abc-8def-0123456789ab");
  EXPECT_EQ(Uuid::from_hex(id->hex()), id);
  EXPECT_FALSE(Uuid::from_hex("0192b6c0"));
  EXPECT_FALSE(Uuid::from_hex("0192b6c0x0000-7abc-8def-0123456789ab"));
}

}  // namespace
}  // namespace postrider::base
