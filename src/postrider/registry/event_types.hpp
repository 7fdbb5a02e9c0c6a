// The catalogue of event types: description, versions with schema and example, and how strictly data is
// validated.
//
// Every change is one transaction that ends with its note in the control log.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/base/result.hpp"
#include "postrider/base/time.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/registry/caller.hpp"
#include "postrider/registry/rejection.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::registry {

enum class Validation { off, warn, reject };
std::string_view label(Validation validation);
std::optional<Validation> parse_validation(std::string_view text);

inline constexpr int event_types_max = 10'000;

struct EventTypeVersion {
  std::string version;
  std::optional<std::string> schema;   // JSON
  std::optional<std::string> example;  // JSON
  std::optional<base::Timestamp> deprecated_at;

  bool operator==(const EventTypeVersion&) const = default;
};

struct EventTypeSettings {
  std::optional<std::string> description;
  Validation validation = Validation::off;
  std::vector<EventTypeVersion> versions;  // the oldest first, the latest last

  bool operator==(const EventTypeSettings&) const = default;
};

struct EventType {
  std::string name;
  EventTypeSettings settings;
  int32_t revision = 1;  // for If-Match
  base::Timestamp created_at{};
  base::Timestamp updated_at{};
};

runtime::Task<std::optional<EventType>> find_event_type(pg::Link& link, std::string name);
// Names after `after`, in order of name.
runtime::Task<std::vector<EventType>> list_event_types(pg::Link& link, std::string after, int limit);

struct PutEventType {
  std::string name;
  EventTypeSettings settings;
};
struct EventTypePut {
  EventType type;
  bool is_new = false;
};
// Makes it or turns it into this; the same once more changes nothing.
runtime::Task<base::Result<EventTypePut, Rejection>> put_event_type(pg::Link& link, const Caller& caller,
                                                                    PutEventType wanted);

runtime::Task<std::optional<Rejection>> delete_event_type(pg::Link& link, const Caller& caller,
                                                          std::string name);

}  // namespace postrider::registry
