// The preview of a response: short, printable, and the same when it is shortened again.
#include <string>

#include "fuzz.hpp"
#include "postrider/http/client/preview.hpp"

using namespace postrider::http;

void fuzz_one(std::string_view input) {
  for (const bool is_complete : {false, true}) {
    const std::string preview = redacted_preview(input, is_complete);
    CHECK(preview.size() <= 1024);
    for (const char c : preview) CHECK(static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t');
  }
}
