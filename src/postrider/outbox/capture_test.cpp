// The pure parts of change data capture: what the slot sends, what emit() wrote, what is to be done.
#include <gtest/gtest.h>

#include "postrider/crypto/digest.hpp"
#include "postrider/outbox/capture_plan.hpp"
#include "postrider/outbox/pgoutput.hpp"

namespace postrider::outbox {
namespace {

using namespace std::string_literals;

const std::string kKey = "0123456789abcdef0123456789abcdef";

std::string int64(uint64_t value) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift));
  return bytes;
}

std::string proven(const std::string& message) {
  const std::string inner = kKey + message;
  const auto first = crypto::sha256(inner);
  const std::string outer = kKey + std::string(first.view());
  return std::string(crypto::sha256(outer).view()) + message;
}

TEST(Pgoutput, SaysWhereATransactionBeginsAndEndsAndWhatWasEmittedInIt) {
  const auto begin = decode("B" + int64(7) + int64(1) + "\0\0\0\1"s);
  ASSERT_TRUE(begin && std::holds_alternative<Begin>(*begin));
  EXPECT_EQ(std::get<Begin>(*begin).commit, pg::Lsn{7});
  const std::string bytes = "M\1"s + int64(5) + "postrider\0"s + "\0\0\0\3"s + "a\0b"s;
  const auto message = decode(bytes);
  ASSERT_TRUE(message && std::holds_alternative<Emitted>(*message));
  const auto& emitted = std::get<Emitted>(*message);
  EXPECT_TRUE(emitted.is_transactional);
  EXPECT_EQ(emitted.at, pg::Lsn{5});
  EXPECT_EQ(emitted.prefix, "postrider");
  EXPECT_EQ(emitted.content, "a\0b"s);
  const auto commit = decode("C\0"s + int64(7) + int64(9) + int64(1));
  ASSERT_TRUE(commit && std::holds_alternative<Commit>(*commit));
  EXPECT_EQ(std::get<Commit>(*commit).end, pg::Lsn{9});
  const auto other = decode("I whatever");
  EXPECT_TRUE(other && std::holds_alternative<OtherChange>(*other));
}

TEST(Pgoutput, WhatIsCutOffIsNothing) {
  const std::string whole = "M\1"s + int64(5) + "postrider\0"s + "\0\0\0\3"s + "abc"s;
  for (size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_FALSE(decode(std::string_view(whole).substr(0, bytes))) << bytes;
  EXPECT_FALSE(decode("B\0\0"s));
  EXPECT_FALSE(decode("M\1"s + int64(5) + "p\0"s + "\xff\xff\xff\xff"s + "abc"s));
}

TEST(CapturedMessage, HasTheEventAndItsExactData) {
  const std::string message =
      "[12, \"01a1e288a0b07003a000b3431e44bbb6\", \"acme\", \"a.b\", \"own\", null, -1000000, \"s\\u00fc\", "
      "null, "
      "1794801967280427]\n {\"x\":\n 1e400} ";
  const auto captured = read_message(proven(message), kKey);
  ASSERT_TRUE(captured);
  EXPECT_EQ(captured->row.id, 12);
  const auto event = captured->event();
  EXPECT_EQ(event.tenant_id, "acme");
  EXPECT_EQ(event.id, "own");
  EXPECT_EQ(event.version, std::nullopt);
  EXPECT_EQ(event.subject, "sü");
  EXPECT_EQ(event.occurred_at, base::Timestamp(base::Microseconds(-1'000'000)));
  EXPECT_EQ(event.written_at, base::Timestamp(base::Microseconds(1'794'801'967'280'427)));
  EXPECT_EQ(event.given_id->public_id(), "evt_01a1e288a0b07003a000b3431e44bbb6");
  EXPECT_EQ(event.data, " {\"x\":\n 1e400} ");
}

TEST(CapturedMessage, IsNothingWithoutProofOrForm) {
  const std::string head =
      "[1, \"01a1e288a0b07003a000b3431e44bbb6\", \"t\", \"a\", null, null, null, null, null, 1]";
  EXPECT_TRUE(read_message(proven(head + "\n1"), kKey));
  std::string forged = proven(head + "\n1");
  forged.back() = '2';
  EXPECT_FALSE(read_message(forged, kKey));
  EXPECT_FALSE(read_message(proven(head + "\n1"), "another key"));
  EXPECT_FALSE(read_message("", kKey));
  EXPECT_FALSE(read_message(std::string(32, 'x'), kKey));
  EXPECT_FALSE(read_message(proven(head), kKey)) << "no data";
  EXPECT_FALSE(read_message(proven("[1]\n1"), kKey));
  EXPECT_FALSE(read_message(proven("{}\n1"), kKey));
  EXPECT_FALSE(
      read_message(proven("[1, \"no id\", \"t\", \"a\", null, null, null, null, null, 1]\n1"), kKey));
}

TEST(LogPosition, IsReadAndWrittenAsPostgresDoes) {
  EXPECT_EQ(to_text(pg::Lsn{0x16B374D848}), "16/B374D848");
  EXPECT_EQ(parse_lsn("16/B374D848"), pg::Lsn{0x16B374D848});
  EXPECT_EQ(parse_lsn("0/0"), pg::Lsn{0});
  for (const char* bad : {"", "/", "1", "g/0", "1/100000000", "1/2/3"}) EXPECT_FALSE(parse_lsn(bad)) << bad;
  EXPECT_LT((LogPosition{pg::Lsn{1}, pg::Lsn{9}}), (LogPosition{pg::Lsn{2}, pg::Lsn{0}}));
}

CaptureView healthy() {
  CaptureView view;
  view.is_wanted = true;
  view.bytes_max = 100;
  view.wal_level = "logical";
  view.has_slot = view.was_slot_made = true;
  view.retained_bytes = 100;
  view.state = "on";
  return view;
}

TEST(CapturePlan, FollowsFromOneLook) {
  using enum CaptureStep;
  struct Case {
    const char* what;
    void (*change)(CaptureView&);
    CaptureStep step;
  };
  const Case cases[] = {
      {"all is well", [](CaptureView&) {}, read},
      {"over the limit", [](CaptureView& v) { v.retained_bytes = 101; }, drain},
      {"was over the limit", [](CaptureView& v) { v.state = "draining"; }, drain},
      {"no longer wanted", [](CaptureView& v) { v.is_wanted = false; }, drain},
      {"no slot yet", [](CaptureView& v) { v.has_slot = v.was_slot_made = false; }, make_slot},
      {"never wanted", [](CaptureView& v) { v.is_wanted = v.has_slot = v.was_slot_made = false; }, rest},
      {"the slot is gone", [](CaptureView& v) { v.has_slot = false; }, mourn},
      {"gone, and not wanted", [](CaptureView& v) { v.has_slot = v.is_wanted = false; }, mourn},
      {"the server gave it up", [](CaptureView& v) { v.is_slot_lost = true; }, mourn},
      {"no logical decoding",
       [](CaptureView& v) {
         v.has_slot = v.was_slot_made = false;
         v.wal_level = "replica";
       },
       reject},
  };
  for (const auto& each : cases) {
    CaptureView view = healthy();
    each.change(view);
    EXPECT_EQ(plan(view, false), each.step) << each.what;
  }
  CaptureView fallen = healthy();
  fallen.has_slot = fallen.was_slot_made = false;
  EXPECT_EQ(plan(fallen, true), rest);
}

}  // namespace
}  // namespace postrider::outbox
