#include "postrider/base/text.hpp"

#include <gtest/gtest.h>

namespace postrider::base {
namespace {

using namespace std::string_view_literals;

TEST(Text, GoodTextIsKeptAsItIs) {
  EXPECT_EQ(storable("Größe: 日本 🐎", 100), "Größe: 日本 🐎");
  EXPECT_EQ(storable("", 100), "");
}

TEST(Text, WhatPostgresRefusesIsReplaced) {
  EXPECT_EQ(storable("a\0b"sv, 100),
            "a\xef\xbf\xbd"
            "b");
  EXPECT_EQ(storable("a\xff\xc3", 100), "a\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(storable("\xed\xa0\x80", 100).find('\xed'), std::string::npos) << "half of a surrogate pair";
}

TEST(Text, TheCutIsBetweenCharacters) {
  EXPECT_EQ(storable("ééé", 5), "éé");
  EXPECT_EQ(storable("ééé", 6), "ééé");
  EXPECT_EQ(storable("a\0"sv, 3), "a");
}

}  // namespace
}  // namespace postrider::base
