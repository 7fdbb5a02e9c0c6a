// The bytes that every receiver of an event gets, and the response to its publisher. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "postrider/base/time.hpp"
#include "postrider/publish/new_event.hpp"

namespace postrider::publish {

// `{"id":…,"type":…,"version":…,"tenant_id":…,"created_at":…,"data":…}`; version only when there is one, data
// as it came.
std::string envelope(const NewEvent& event, std::string_view public_id, std::string_view created_at);
// The same of one of its other versions.
std::string envelope(const NewEvent& event, const EventVersion& version, std::string_view public_id,
                     std::string_view created_at);

// `{"id":…,"type":…,"tenant_id":…,"created_at":…,"deliveries":…}`
std::string publish_response(const NewEvent& event, std::string_view public_id, std::string_view created_at,
                             int64_t deliveries);

}  // namespace postrider::publish
