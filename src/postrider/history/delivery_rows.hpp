// A delivery as the API shows it. Its status follows from its queue row if it has one, otherwise from the
// outcome of its last attempt.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "postrider/base/json_writer.hpp"
#include "postrider/base/time.hpp"
#include "postrider/history/deliveries.sql.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/pg/link.hpp"
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
  // While it is in the queue:
  std::optional<base::Timestamp> next_attempt_at;
  std::optional<std::string> waiting_for;        // none: it is due, or in flight
  std::optional<base::Timestamp> give_up_at;     // none: its clock stands still
  std::optional<base::Timestamp> next_probe_at;  // while the breaker of its endpoint is open
  // Always:
  std::optional<base::Timestamp> last_attempt_at, delivered_at;
  std::optional<int> last_status_code;
  std::optional<std::string> last_error, last_error_detail;
};

// Builds deliveries from their attempts. The attempts of one delivery must follow each other; the deliveries
// keep that order.
class HistoryReader {
 public:
  // A row of a statement that selects the attempt_columns of deliveries.sql.
  template <class Row>
  void add(const Row& row) {
    add_attempt(read(row));
  }
  std::vector<Delivery> take();

 private:
  template <class Row>
  static Delivery read(const Row& row);
  void add_attempt(Delivery attempt);
  void finish_delivery();

  std::vector<Delivery> deliveries_;
  // Of the delivery that is being read: attempt 0, the last of the others, and the last failed probe.
  std::optional<Delivery> note_, last_, probe_;
};

std::vector<Delivery> read_history(const pg::RowList<sql::HistoryRow>& rows);

// From a row of a statement that selects the queue_columns of deliveries.sql.
template <class Row>
Delivery read_queued(const Row& row) {
  Delivery delivery;
  delivery.id = {row.id};
  delivery.endpoint = {row.endpoint_id};
  delivery.event = {row.event_id};
  delivery.tenant = row.tenant_id;
  delivery.attempts = row.attempts;
  delivery.status = row.attempts == 0 ? DeliveryStatus::pending : DeliveryStatus::retrying;
  delivery.next_attempt_at = row.due_at;
  delivery.created_at = row.created_at;
  delivery.replay_id = row.replay_id;
  return delivery;
}

// Adds the last attempt to a delivery that was read from the queue.
void add_history(Delivery& queued, const Delivery& history);

// The names that a list shows for its deliveries, found for many at once.
struct DeliveryNames {
  struct Event {
    std::string public_id, type;
    std::optional<std::string> version, subject;
  };
  struct Endpoint {
    std::string public_id, url;
    int max_attempts = 0;
  };
  std::unordered_map<model::EventId, Event> events;  // without events whose retention has ended
  std::unordered_map<model::EndpointId, Endpoint> endpoints;
};
runtime::Task<DeliveryNames> find_names(pg::Link& link, const std::vector<Delivery>& deliveries);

// Sets the status processing on the queued deliveries that the nodes report as in flight.
runtime::Task<void> mark_processing(pg::Link& link, std::vector<Delivery>& deliveries);

// Adds to the queued deliveries what they wait for and until when. After mark_processing().
runtime::Task<void> add_waits(pg::Link& link, std::vector<Delivery>& deliveries);

base::JsonObject delivery_json(const Delivery& delivery, const DeliveryNames& names,
                               const registry::Principal& reader);

template <class Row>
Delivery HistoryReader::read(const Row& row) {
  Delivery delivery;
  delivery.id = {row.delivery_id};
  delivery.endpoint = {row.endpoint_id};
  delivery.event = {row.event_id};
  delivery.tenant = row.tenant_id;
  delivery.status = parse_delivery_status(row.outcome).value_or(DeliveryStatus::retrying);
  delivery.attempts = row.attempt;
  delivery.created_at = row.created_at;
  delivery.replay_id = row.replay_id;
  delivery.next_attempt_at = row.next_attempt_at;
  delivery.last_attempt_at = row.started_at;
  delivery.last_status_code = row.status_code;
  delivery.last_error = row.error;
  delivery.last_error_detail = row.error_detail;
  if (delivery.status == DeliveryStatus::delivered)
    delivery.delivered_at = row.started_at + base::Microseconds(row.total_us);
  return delivery;
}

}  // namespace postrider::history
