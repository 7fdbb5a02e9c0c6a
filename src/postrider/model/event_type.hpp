// Event types (`invoice.paid`) and the patterns that subscribe to them (`invoice.paid`, `invoice.*`, `*`).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace postrider::model {

constexpr size_t kEventTypeMax = 128;

// [A-Za-z0-9_-]+ joined by dots, at most 128 characters.
bool is_event_type(std::string_view text);

constexpr size_t kVersionMax = 64;

// Of an event's data, as the catalogue and subscriptions name it: letters, digits, dots, _ and -.
bool is_version(std::string_view text);

// A type, a type followed by `.*`, or `*`.
bool is_pattern(std::string_view text);

// Every pattern that matches the type: itself, each proper prefix with `.*`, and `*`. Fan-out joins by
// equality. Nothing matches a type that is too long.
std::vector<std::string> patterns_matching(std::string_view type);

}  // namespace postrider::model
