// The headers of an endpoint's response that may be stored and shown.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace postrider::http {

inline constexpr size_t kStoredHeadersBytesMax = 4096;

// Pure. The header lines of a raw response head, as "name: value\n" with lower-case names: at most 4 KiB of
// valid UTF-8, values of at most 512 bytes. Values of cookies and of headers whose name suggests a secret
// become
// "[redacted]"; so does what looks like a secret in another value. Folded and broken lines are left out.
std::string redacted_headers(std::string_view head);

// Reads them again. Headers with the same name become one, with their values joined by ", ".
std::vector<std::pair<std::string, std::string>> read_headers(std::string_view stored);

}  // namespace postrider::http
