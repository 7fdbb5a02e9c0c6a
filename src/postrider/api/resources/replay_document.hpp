// Replays as JSON, and the steps that all requests for a replay share.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>

#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/registry/audience.hpp"
#include "postrider/replay/request.hpp"

namespace postrider::api {

inline constexpr TextRule replay_reason_rule{.bytes_max = 1'000};

// A request for a replay of a range, before its endpoint is looked up.
struct RangeBody {
  replay::RangeRequest request;
  std::optional<std::string> endpoint;
  bool is_dry_run = false;
};

RangeBody read_range(const boost::json::object& document, const config::Config& config, base::Timestamp now,
                     FieldProblems& problems);

// Dead letters by their IDs or by a filter: endpoint, cause, since, until, or `"all": true`.
RangeBody read_dead_letters(const boost::json::object& document, const config::Config& config,
                            base::Timestamp now, FieldProblems& problems);

void read_time(Fields& fields, std::string_view name, std::optional<base::Timestamp>& target);

http::Problem unknown_replay();
http::Problem endpoint_inactive();

// Looks up the tenant and the endpoint of a range. Returns the problem with them, or no value.
Task<std::optional<http::Problem>> resolve(pg::Link& link, RangeBody& body);

// Queues the replay; the response is 202 with the replay.
Task<Response> request_replay(Call& call, pg::Link& link, replay::RangeRequest wanted);
Task<Response> show_replay(Call& call, pg::Link& link, model::ReplayId id, int status);

// Bound keys do not see which operator requested a replay, and why.
std::string replay_json(const replay::Replay& replay, http::Audience audience);

}  // namespace postrider::api
