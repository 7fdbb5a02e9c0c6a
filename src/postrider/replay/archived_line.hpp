// A line of an archive, before it is published or brought back: an event, or a row of an outbox. Pure.
#pragma once

#include <string>
#include <string_view>

namespace postrider::replay {

// Quotes within a value are escaped, so only a column can look like this.
bool is_outbox_row(std::string_view line);

// The error in the line: it is not a JSON object, or it breaks a rule of all events. Empty: none.
std::string fault_of_line(std::string_view line);

}  // namespace postrider::replay
