#include "postrider/history/delivery_scan.hpp"

#include <algorithm>
#include <utility>

#include "postrider/history/delivery_scan_steps.hpp"
#include "postrider/model/event_pattern.hpp"

namespace postrider::history {

namespace {

using namespace std::chrono_literals;

// A page that found little continues this long.
constexpr auto kPatience = 12ms;

base::Uuid last_id() {
  base::Uuid id;
  id.bytes.fill(0xFF);
  return id;
}

bool accepts(const DeliveryFilter& filter, const Delivery& delivery, const DeliveryNames& names) {
  if (filter.tenant && delivery.tenant != *filter.tenant) return false;
  if (filter.endpoint && delivery.endpoint != filter.endpoint->id) return false;
  if (filter.status && delivery.status != *filter.status) return false;
  if (delivery.id.uuid < filter.from || delivery.id.uuid >= filter.before) return false;
  if (!filter.type && !filter.subject) return true;
  const auto event = names.events.find(delivery.event);
  if (event == names.events.end()) return false;
  if (filter.type && !model::matches(*filter.type, event->second.type)) return false;
  return !filter.subject || event->second.subject == *filter.subject;
}

bool is_queued_only(const DeliveryFilter& filter) {
  return filter.status == DeliveryStatus::pending || filter.status == DeliveryStatus::retrying;
}

// Adds to the page; true when it is full. The next page reads the rest again.
bool take(DeliveryPage& page, const DeliveryFilter& filter, ScanChunk& chunk) {
  for (size_t i = 0; i < chunk.deliveries.size(); ++i) {
    Delivery& delivery = chunk.deliveries[i];
    if (!accepts(filter, delivery, chunk.names)) continue;
    page.deliveries.push_back(std::move(delivery));
    if (page.deliveries.size() < static_cast<size_t>(filter.limit)) continue;
    const bool is_all = i + 1 == chunk.deliveries.size() && !chunk.next;
    if (!is_all) page.next = chunk.cursors[i];
    return true;
  }
  page.next = chunk.next;
  return !chunk.next.has_value();
}

}  // namespace

runtime::Task<base::Result<DeliveryPage, BadCursor>> scan_deliveries(pg::Link& link, DeliveryFilter filter) {
  DeliveryPage page;
  const auto give_up_at = base::BootClock::now() + kPatience;
  const bool is_by_event = filter.event || filter.subject;
  ScanFrom from{.after = filter.after};
  if (filter.before == base::Uuid{}) filter.before = last_id();
  while (true) {
    std::optional<ScanChunk> chunk;
    if (is_by_event)
      chunk = co_await scan_by_event(link, filter, from);
    else if (filter.status == DeliveryStatus::processing)
      chunk = co_await scan_in_flight(link, filter, from.after);
    else if (is_queued_only(filter))
      chunk = co_await scan_by_lane(link, filter, from.after);
    else
      chunk = co_await scan_by_time(link, filter, from);
    if (!chunk) co_return base::Failure{BadCursor{}};
    co_await mark_processing(link, chunk->deliveries);
    chunk->names = co_await find_names(link, chunk->deliveries);
    const bool is_full = take(page, filter, *chunk);
    page.names.events.merge(chunk->names.events);
    page.names.endpoints.merge(chunk->names.endpoints);
    if (is_full || base::BootClock::now() >= give_up_at) break;
    from.after = *page.next;
    ++from.look;
  }
  co_await add_waits(link, page.deliveries);
  co_return page;
}

}  // namespace postrider::history
