// Lists of deliveries over a history of any length: a page reads a limited number of rows and says where the
// next one begins, also when it found little. Which statement is used depends on the filter; see
// deliveries.sql.
//
//   by time      newest first: what is in the queue and what has ended, merged by id
//   by lane      status pending or retrying: in the order in which it will be sent, endpoint by endpoint
//   in flight    status processing: what nodes say they are sending, newest first
//   by event     event or subject: event by event, the newest first, replays with their event
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
  std::string tail;  // the last 12 hex digits of its deliveries' ids, but for replays
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
  std::string after;  // where the page before ended; empty: the first page
};

struct DeliveryPage {
  std::vector<Delivery> deliveries;
  DeliveryNames names;
  std::optional<std::string> next;  // none: this is the end
};

struct BadCursor {};

// Throws pg::Error.
runtime::Task<base::Result<DeliveryPage, BadCursor>> scan_deliveries(pg::Link& link, DeliveryFilter filter);

}  // namespace postrider::history
