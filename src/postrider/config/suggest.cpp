#include "postrider/config/suggest.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace postrider::config {
namespace {

// Insertions, deletions and replacements that turn one word into the other.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t k = 1; k <= b.size(); ++k) {
      const size_t replaced = diagonal + (a[i - 1] == b[k - 1] ? 0 : 1);
      diagonal = row[k];
      row[k] = std::min({replaced, row[k] + 1, row[k - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  constexpr size_t word_bytes_max = 100;
  if (word.size() > word_bytes_max) return "";
  std::string best;
  size_t best_distance = std::max<size_t>(2, word.size() / 4) + 1;
  for (const std::string& candidate : candidates) {
    const size_t edits = distance(word, candidate);
    if (edits >= best_distance) continue;
    best_distance = edits;
    best = candidate;
  }
  return best;
}

}  // namespace postrider::config
