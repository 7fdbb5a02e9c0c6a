// Common changes to a webhook's body between the sender and the code that verifies it. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace postrider::cli {

struct BodyVariant {
  std::string body;
  std::string explanation;  // if this one was signed
};
// Only variants that differ from the body.
std::vector<BodyVariant> body_variants(const std::string& body);

// JSON without insignificant whitespace; the text itself if it is not JSON.
std::string compact_json(std::string_view text);

}  // namespace postrider::cli
