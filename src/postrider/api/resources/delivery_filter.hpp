// The filters of a list of deliveries, as callers write them, and turned into what the tables know.
#pragma once

#include "postrider/api/wire/page.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/history/delivery_scan.hpp"

namespace postrider::api {

// public IDs, not looked up yet.
struct DeliveryQuery {
  history::DeliveryFilter filter;
  std::optional<std::string> endpoint, event;
};

// endpoint, event, type, limit and cursor; the tenant is that of the path, if there is one.
DeliveryQuery read_which(const Call& call, Query& query);
// The same, and subject, status, since and until.
DeliveryQuery read_delivery_query(const Call& call, Query& query);

// No value: nothing can match, because the event does not exist. An unknown tenant or endpoint is a problem.
runtime::Task<base::Result<std::optional<history::DeliveryFilter>, http::Problem>> resolve(
    pg::Link& link, DeliveryQuery wanted);

// The endpoint with that public ID, of the tenant or, without one, of whichever tenant has it.
runtime::Task<base::Result<history::LaneRef, http::Problem>> find_lane(pg::Link& link,
                                                                       std::optional<model::TenantId> tenant,
                                                                       std::string endpoint);

// The causes of dead letters, and the error for any other value.
bool is_cause(std::string_view text);
inline constexpr auto cause_rule =
    "must be one of: rejected, gone, exhausted, expired, blocked, endpoint_disabled";

}  // namespace postrider::api
