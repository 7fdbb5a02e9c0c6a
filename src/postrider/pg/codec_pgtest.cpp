#include "postrider/pg/codec.hpp"

#include <limits>
#include <vector>

#include "postrider/pg/pgtest_fixture.hpp"

namespace postrider::pg {
namespace {

using base::Timestamp;
using base::Uuid;

const Uuid some_uuid = *Uuid::from_hex("018f6b1e2a3c7d4e8f90a1b2c3d4e5f6");
const Timestamp some_time = *base::parse_rfc3339("2026-04-08T10:15:30.123456Z");

struct CodecTest : ConnectedTest {
  // The value returned when it is sent as $1 of the type.
  template <class T, class Back = T>
  Back echo(const std::string& type, const T& value) {
    const std::string sql = "select $1::" + type;
    const Rows rows = run(connection->execute(sql, Params(value)));
    if constexpr (std::is_same_v<Back, std::string_view>)
      return std::string(rows.get<std::string>(0, 0));
    else
      return rows.get<Back>(0, 0);
  }
  // The server's text for it, which proves that the encoding is correct and not only symmetric.
  template <class T>
  std::string shown(const std::string& type, const T& value) {
    const Rows rows = run(connection->execute("select $1::" + type + "::text", Params(value)));
    return rows.get<std::optional<std::string>>(0, 0).value_or("null");
  }
};

TEST_F(CodecTest, NumbersRoundTrip) {
  for (const int16_t value : {int16_t{0}, int16_t{-1}, std::numeric_limits<int16_t>::min()})
    EXPECT_EQ(echo("smallint", value), value);
  for (const int32_t value :
       {0, -1, 42, std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min()})
    EXPECT_EQ(echo("int", value), value);
  for (const int64_t value : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::max()})
    EXPECT_EQ(echo("bigint", value), value);
  for (const double value : {0.0, -1.5, 19.99, std::numeric_limits<double>::infinity()})
    EXPECT_EQ(echo("double precision", value), value);
  EXPECT_EQ(echo("boolean", true), true);
  EXPECT_EQ(echo("boolean", false), false);
  EXPECT_EQ(shown("bigint", int64_t{-5'000'000'000}), "-5000000000");
}

TEST_F(CodecTest, ANarrowIntegerFitsAWiderParameterAndIsReadWider) {
  EXPECT_EQ((echo<int32_t, int64_t>("bigint", 7)), 7);
  EXPECT_EQ((echo<int16_t, int64_t>("int", int16_t{7})), 7);
  EXPECT_THROW((echo<int64_t, int32_t>("bigint", int64_t{7})), Error);
}

TEST_F(CodecTest, TextBytesAndDocumentsRoundTrip) {
  EXPECT_EQ(echo("text", std::string("grüße ✓")), "grüße ✓");
  EXPECT_EQ(echo("text", std::string()), "");
  EXPECT_EQ(shown("text", "literal"), "literal");
  const std::string zeros("\0\1\xff", 3);
  const Rows bytes = run(connection->execute("select $1::bytea", Params(Bytes{zeros})));
  EXPECT_EQ(bytes.get<Bytes>(0, 0).view, zeros);
  EXPECT_EQ(shown("jsonb", Json{R"({"b":1,"a":[null]})"}), R"({"a": [null], "b": 1})");
  EXPECT_EQ((echo<std::string, std::string>("jsonb", R"({"a":1})")), R"({"a": 1})");
  EXPECT_EQ((echo<std::string, std::string>("json", R"({"a":1})")), R"({"a":1})");
}

TEST_F(CodecTest, UuidsAndTimesRoundTrip) {
  EXPECT_EQ(echo("uuid", some_uuid), some_uuid);
  EXPECT_EQ(shown("uuid", some_uuid), some_uuid.text());
  EXPECT_EQ(shown("timestamptz", some_time), "2026-04-08 10:15:30.123456+00");
  for (const Timestamp value : {some_time, infinity, minus_infinity, Timestamp()})
    EXPECT_EQ(echo("timestamptz", value), value);
  EXPECT_EQ(shown("timestamptz", infinity), "infinity");
  EXPECT_EQ(shown("timestamptz", minus_infinity), "-infinity");
}

TEST_F(CodecTest, NullsNeedAnOptional) {
  EXPECT_EQ(echo("int", std::optional<int32_t>()), std::nullopt);
  EXPECT_EQ(echo("int", std::optional<int32_t>(3)), 3);
  EXPECT_EQ(shown("uuid", std::optional<Uuid>()), "null");
  const Rows rows = run(connection->execute("select null::int as wanted"));
  try {
    rows.get<int32_t>(0, 0);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("wanted"), std::string::npos) << error.what();
  }
}

TEST_F(CodecTest, AWrongTypeIsRefused) {
  const Rows rows = run(connection->execute("select 1, 'x'::text, now()"));
  EXPECT_THROW(rows.get<std::string>(0, 0), Error);
  EXPECT_THROW(rows.get<Uuid>(0, 1), Error);
  EXPECT_THROW(rows.get<int64_t>(0, 2), Error);
}

TEST_F(CodecTest, ArraysRoundTrip) {
  EXPECT_EQ(echo("bigint[]", std::vector<int64_t>{1, -2, 3}), (std::vector<int64_t>{1, -2, 3}));
  EXPECT_EQ(echo("int[]", std::vector<int32_t>{}), std::vector<int32_t>{});
  EXPECT_EQ(echo("smallint[]", std::vector<int16_t>{7}), std::vector<int16_t>{7});
  EXPECT_EQ(echo("boolean[]", std::vector<bool>{true, false}), (std::vector<bool>{true, false}));
  EXPECT_EQ(echo("double precision[]", std::vector<double>{0.5}), std::vector<double>{0.5});
  EXPECT_EQ(echo("uuid[]", std::vector<Uuid>{some_uuid, Uuid{}}), (std::vector<Uuid>{some_uuid, Uuid{}}));
  EXPECT_EQ(echo("timestamptz[]", std::vector<Timestamp>{some_time, infinity}),
            (std::vector<Timestamp>{some_time, infinity}));
  EXPECT_EQ(echo("text[]", std::vector<std::string>{"a", "", "null", "{}\"\\"}),
            (std::vector<std::string>{"a", "", "null", "{}\"\\"}));
  EXPECT_EQ(shown("text[]", std::vector<std::string_view>{"a", "b c"}), "{a,\"b c\"}");
  EXPECT_EQ(shown("bytea[]", std::vector<Bytes>{{"x"}}), "{\"\\\\x78\"}");
  EXPECT_EQ(shown("jsonb[]", std::vector<Json>{{"[1]"}}), "{[1]}");
}

TEST_F(CodecTest, ArraysMayHoldNullsAndBeNull) {
  using Texts = std::vector<std::optional<std::string>>;
  EXPECT_EQ(echo("text[]", Texts{"a", std::nullopt}), (Texts{"a", std::nullopt}));
  EXPECT_EQ(shown("uuid[]", std::vector<std::optional<Uuid>>{std::nullopt}), "{NULL}");
  EXPECT_EQ(echo("int[]", std::optional<std::vector<int32_t>>()), std::nullopt);
  EXPECT_THROW((echo<Texts, std::vector<std::string>>("text[]", Texts{std::nullopt})), Error);
}

TEST_F(CodecTest, EnumsAreTheirLabels) {
  database.sql("create type public.mood as enum ('good', 'bad')");
  EXPECT_EQ(echo("public.mood", std::string("bad")), "bad");
  EXPECT_EQ(echo("public.mood[]", std::vector<std::string>{"good"}), std::vector<std::string>{"good"});
}

}  // namespace
}  // namespace postrider::pg
