// The part of an endpoint's response that may be stored and shown.
#pragma once

#include <string>
#include <string_view>

namespace postrider::http {

// Pure. At most 1 KiB of valid UTF-8 without control characters other than tab and newline; what looks like a
// secret, a token or a card number becomes "[redacted]". `is_complete` is false when `raw` is only the start
// of the body: then something that looks like the beginning of a card number at the very end is redacted,
// too.
std::string redacted_preview(std::string_view raw, bool is_complete);

}  // namespace postrider::http
