// The same field twice in a JSON object: parsers differ in which one they take, so neither is.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace postrider::api {

// The pointer to the first field that its object already has. The text is valid JSON.
std::optional<std::string> find_duplicate_field(std::string_view json);

}  // namespace postrider::api
