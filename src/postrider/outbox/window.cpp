#include "postrider/outbox/window.hpp"

#include <algorithm>

#include "postrider/base/check.hpp"

namespace postrider::outbox {

void Window::begin(bool is_full) {
  is_open_ = true;
  next_.reset();
  late_ = is_full ? std::vector<std::string>() : cursor_.in_progress;
  position_ = {is_full ? 0 : static_cast<int64_t>(cursor_.xmax), 0};
}

Position Window::first_unread() const {
  Position first = position_;
  for (const std::string& xid : late_) first = std::min(first, Position{std::stoll(xid), 0});
  return first;
}

void Window::read(std::string_view snapshot, const std::vector<OutboxRow>& late,
                  const std::vector<OutboxRow>& fresh) {
  CHECK(is_open_);
  if (!next_) next_ = pg::SnapshotCursor::parse(snapshot);
  if (late.empty()) late_.clear();
  if (!fresh.empty()) position_ = {fresh.back().xid, fresh.back().id};
  if (!late.empty() || !fresh.empty()) return;
  cursor_ = std::move(*next_);
  is_open_ = false;
}

}  // namespace postrider::outbox
