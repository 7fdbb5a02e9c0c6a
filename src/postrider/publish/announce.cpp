#include "postrider/publish/announce.hpp"

#include <algorithm>
#include <iterator>

namespace postrider::publish {

void Announcement::add(Commit commit, const Drafts& drafts) {
  CHECK(commit.answers.size() + commit.stale.size() == drafts.size());
  for (auto& [draft, answer] : commit.answers) {
    const auto* published = std::get_if<Published>(&answer);
    if (published != nullptr && !published->is_repeat) ++events;
    draft->answer = std::move(answer);
  }
  has_wide |= commit.has_wide;
  deliveries.insert(deliveries.end(), std::make_move_iterator(commit.deliveries.begin()),
                    std::make_move_iterator(commit.deliveries.end()));
}

void Announcer::announce(Announcement committed) {
  events_created_.add(static_cast<double>(committed.events));
  std::vector<int> buckets;
  for (const auto& delivery : committed.deliveries) buckets.push_back(delivery.bucket);
  std::sort(buckets.begin(), buckets.end());
  buckets.erase(std::unique(buckets.begin(), buckets.end()), buckets.end());
  if (!committed.deliveries.empty()) {
    hand_over_.offer(std::move(committed.deliveries));
    if (on_committed_) on_committed_(buckets);
  }
  if (committed.has_wide && on_wide_) on_wide_();
}

}  // namespace postrider::publish
