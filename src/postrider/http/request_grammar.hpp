// The character classes of RFC 9110 and 9112, as this server reads them: strictly.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "postrider/base/text.hpp"

namespace postrider::http {

namespace grammar {

enum Class : uint8_t {
  token = 1,
  target = 2,
  value = 4,
  digit = 8,
  hex_digit = 16,
  host = 32,
  plain_target = 64
};

constexpr std::array<uint8_t, 256> kClasses = [] {
  std::array<uint8_t, 256> classes{};
  const auto mark = [&](std::string_view characters, uint8_t with) {
    for (const char c : characters) classes[static_cast<uint8_t>(c)] |= with;
  };
  const std::string_view digits = "0123456789";
  const std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  mark(digits, token | digit | hex_digit | host);
  mark(letters, token | host);
  mark("!#$%&'*+-.^_`|~", token);
  mark("ABCDEFabcdef", hex_digit);
  mark(".-_:[]", host);
  for (int c = 0x21; c < 0x7F; ++c) classes[static_cast<size_t>(c)] |= target | value;
  // Never part of a URI, and read differently by different proxies.
  for (const char c : std::string_view("#\"<>\\"))
    classes[static_cast<uint8_t>(c)] &= static_cast<uint8_t>(~target);
  for (auto& classes_of_one : classes)
    if (classes_of_one & target) classes_of_one |= plain_target;
  classes['%'] &= static_cast<uint8_t>(~plain_target);  // begins an escape
  mark(" \t", value);
  for (int c = 0x80; c < 0x100; ++c) classes[static_cast<size_t>(c)] |= value;
  return classes;
}();

constexpr bool is(char c, Class wanted) {
  return (kClasses[static_cast<uint8_t>(c)] & wanted) != 0;
}

inline bool all(std::string_view text, Class wanted) {
  return std::all_of(text.begin(), text.end(), [&](char c) { return is(c, wanted); });
}

}  // namespace grammar

using base::equals_ignoring_case;
using base::lower;

}  // namespace postrider::http
