#include "postrider/pg/snapshot_cursor.hpp"

#include <charconv>

#include "postrider/pg/error.hpp"

namespace postrider::pg {

SnapshotCursor SnapshotCursor::parse(std::string_view text) {
  const auto first = text.find(':');
  const auto second = text.find(':', first + 1);
  const auto fail = [] { throw Error(Kind::other, "the server's snapshot cannot be read"); };
  if (first == std::string_view::npos || second == std::string_view::npos) fail();
  SnapshotCursor cursor;
  const auto xmax = text.substr(first + 1, second - first - 1);
  const auto parsed = std::from_chars(xmax.data(), xmax.data() + xmax.size(), cursor.xmax);
  if (parsed.ec != std::errc()) fail();
  for (auto rest = text.substr(second + 1); !rest.empty();) {
    const auto comma = rest.find(',');
    cursor.in_progress.emplace_back(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return cursor;
}

}  // namespace postrider::pg
