// A delivery as people see it. Its state follows from its queue row, if there is one, and else from how its
// last attempt ended.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "postrider/base/json_writer.hpp"
#include "postrider/base/time.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/pg/rows.hpp"
#include "postrider/registry/keys.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::history {

enum class DeliveryStatus { pending, processing, retrying, delivered, dead_letter, canceled };
std::string_view label(DeliveryStatus status);
std::optional<DeliveryStatus> parse_delivery_status(std::string_view text);

struct Delivery {
  model::DeliveryId id;
  model::EndpointId endpoint;
  model::EventId event;
  model::TenantId tenant;
  DeliveryStatus status = DeliveryStatus::pending;
  int attempts = 0;
  base::Timestamp created_at{};
  std::optional<base::Uuid> replay_id;
  std::optional<base::Timestamp> next_attempt_at;  // while it is in the queue
  std::optional<base::Timestamp> last_attempt_at, delivered_at;
  std::optional<int> last_status_code;
  std::optional<std::string> last_error, last_error_detail;
};

// From rows of the statements history_of_… (deliveries.sql), which have the attempts of one delivery side by
// side: each becomes one Delivery, in the same order.
std::vector<Delivery> read_history(const pg::Rows& rows);
// From the first columns of the statements live_….
Delivery read_live(const pg::Rows& rows, size_t row);
// What is in the queue counts; of the other only what was tried last.
void add_history(Delivery& live, const Delivery& history);

// The names that a list shows beside its deliveries, looked up for many at once.
struct DeliveryNames {
  struct Event {
    std::string public_id, type;
    std::optional<std::string> version, subject;
  };
  struct Endpoint {
    std::string public_id, url;
    int max_attempts = 0;
  };
  std::unordered_map<model::EventId, Event> events;  // an event whose time is over is not there
  std::unordered_map<model::EndpointId, Endpoint> endpoints;
};
runtime::Task<DeliveryNames> find_names(pg::Link& link, const std::vector<Delivery>& deliveries);

// Gives those that are in the queue and being sent, as the nodes say, the status processing.
runtime::Task<void> mark_processing(pg::Link& link, std::vector<Delivery>& deliveries);

base::JsonObject delivery_json(const Delivery& delivery, const DeliveryNames& names,
                               const registry::Principal& reader);

}  // namespace postrider::history
