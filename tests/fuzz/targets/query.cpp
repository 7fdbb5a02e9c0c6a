// Query strings and percent-encoding.
#include <string>

#include "fuzz.hpp"
#include "postrider/http/request.hpp"

using namespace postrider::http;

void fuzz_one(std::string_view input) {
  for (const bool plus_is_space : {false, true}) {
    const auto decoded = percent_decode(input, plus_is_space);
    if (decoded) CHECK(decoded->size() <= input.size() && decoded->find('\0') == std::string::npos);
  }
  if (const auto query = parse_query(input))
    for (const Parameter& parameter : *query) CHECK(parameter.name.find('\0') == std::string::npos);
}
