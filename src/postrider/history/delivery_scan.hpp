// Lists of deliveries over a history of any length. A page reads a limited number of rows and returns where
// the next one starts, even if it found little. The filter decides which scan is used (deliveries.sql):
//
//   by time      newest first: queued and ended deliveries, merged by ID
//   by lane      status pending or retrying: in the order of sending, endpoint by endpoint
//   in flight    status processing: what the nodes report as in flight, newest first
//   by event     event or subject: event by event, newest first, replays with their event
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "postrider/base/result.hpp"
#include "postrider/history/delivery_rows.hpp"

namespace postrider::history {

struct LaneRef {
  model::EndpointId id;
  int bucket = 0;
  bool is_strict = false;
  std::string tail;  // the last 12 hex digits of the IDs of its deliveries, except replays
};

struct DeliveryFilter {
  std::optional<model::TenantId> tenant;
  std::optional<LaneRef> endpoint;
  std::optional<model::EventId> event;
  std::optional<std::string> type;  // a pattern
  std::optional<std::string> subject;
  std::optional<DeliveryStatus> status;
  base::Uuid from;    // inclusive
  base::Uuid before;  // exclusive
  int limit = 50;
  std::string after;  // where the previous page ended; empty: the first page
};

struct DeliveryPage {
  std::vector<Delivery> deliveries;
  DeliveryNames names;
  std::optional<std::string> next;  // none: this is the last page
};

struct BadCursor {};

// Throws pg::Error.
runtime::Task<base::Result<DeliveryPage, BadCursor>> scan_deliveries(pg::Link& link, DeliveryFilter filter);

}  // namespace postrider::history
