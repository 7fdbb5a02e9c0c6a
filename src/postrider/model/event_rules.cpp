#include "postrider/model/event_rules.hpp"

#include <algorithm>

#include "postrider/base/text.hpp"
#include "postrider/model/event_type.hpp"
#include "postrider/model/ids.hpp"

namespace postrider::model {

namespace {

bool is_short_text(std::string_view text, size_t bytes_max) {
  return !text.empty() && text.size() <= bytes_max && base::is_storable(text);
}

std::string length_rule(size_t bytes_max) {
  return "must have 1 to " + std::to_string(bytes_max) + " bytes of UTF-8 without NUL";
}

}  // namespace

std::vector<EventError> errors_of(const EventFields& event) {
  std::vector<EventError> errors = errors_of_form(event);
  if (event.tenant_id == kReservedTenant)
    errors.push_back({"tenant_id", "is reserved: only postrider itself publishes to this tenant"});
  return errors;
}

std::vector<EventError> errors_of_form(const EventFields& event) {
  constexpr const char* kTimeRule = "must be a time in the years 1 to 9999";
  std::vector<EventError> errors;
  if (!is_tenant_id(event.tenant_id)) errors.push_back({"tenant_id", std::string(kTenantIdRule)});
  if (!is_event_type(event.type))
    errors.push_back(
        {"type", "must be words of A-Z, a-z, 0-9, _ and - joined by dots, at most 128 characters"});
  if (event.id && !is_caller_id(*event.id))
    errors.push_back({"id", "must be 1 to 64 of A-Z, a-z, 0-9, _ and -"});
  if (event.version && !is_short_text(*event.version, kVersionMax))
    errors.push_back({"version", length_rule(kVersionMax)});
  if (event.subject && !is_short_text(*event.subject, kSubjectMax))
    errors.push_back({"subject", length_rule(kSubjectMax)});
  if (event.traceparent && !is_traceparent(*event.traceparent))
    errors.push_back({"traceparent", "must have the form of W3C Trace Context, version 00"});
  if (event.occurred_at && !is_writable_time(*event.occurred_at))
    errors.push_back({"occurred_at", kTimeRule});
  if (event.written_at && !is_writable_time(*event.written_at)) errors.push_back({"created_at", kTimeRule});
  return errors;
}

std::string to_text(const std::vector<EventError>& errors) {
  std::string text;
  for (const EventError& error : errors) {
    if (!text.empty()) text += "; ";
    text.append(error.field).append(" ").append(error.detail);
  }
  return text;
}

bool is_writable_time(base::Timestamp time) {
  using namespace std::chrono;
  constexpr sys_days kFirst = year(1) / January / 1;
  constexpr sys_days kEnd = year(10'000) / January / 1;
  return time >= kFirst && time < kEnd;
}

bool is_traceparent(std::string_view text) {
  constexpr std::string_view kShape = "00-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
  if (text.size() != kShape.size()) return false;
  const auto fits = [](char c, char shape) {
    if (shape != 'x') return c == shape;
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  };
  return std::equal(text.begin(), text.end(), kShape.begin(), fits);
}

}  // namespace postrider::model
