// What the targets share. A target is one file with fuzz_one(): it gets any bytes, and aborts when a claim
// about them does not hold. The same file is a libFuzzer binary (preset fuzz) and a replay of the corpus (the
// tests).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "postrider/base/check.hpp"

void fuzz_one(std::string_view input);

// Cuts the input into pieces of different sizes, calls `feed` with each until it returns false.
template <class Feed>
void in_pieces(std::string_view input, size_t piece, const Feed& feed) {
  for (size_t at = 0; at < input.size(); at += piece)
    if (!feed(input.substr(at, piece))) return;
}
