// Bodies of publish calls. What is accepted is JSON to another parser, too, and its data is a part of the
// body.
#include <boost/json/parse.hpp>
#include <string>

#include "fuzz.hpp"
#include "postrider/publish/event_request.hpp"

using namespace postrider;

namespace {

bool is_json(std::string_view text) {
  // Boost.JSON rejects lone surrogates and cannot represent every number. JSON allows both, and payloads must
  // pass unchanged.
  if (text.find("\\ud") != std::string_view::npos || text.find("\\uD") != std::string_view::npos) return true;
  boost::json::parse_options options;
  options.max_depth = 256;
  boost::json::error_code failure;
  boost::json::parse(text, failure, {}, options);
  return !failure || failure == boost::json::error::exponent_overflow ||
         failure == boost::json::error::not_exact;
}

void check(const publish::ParsedEvent& event, std::string_view body) {
  if (!event.ok()) {
    CHECK(event.error().status == 400 || event.error().status == 422);
    return;
  }
  CHECK(!event->type.empty());
  CHECK(event->data.data() >= body.data() &&
        event->data.data() + event->data.size() <= body.data() + body.size());
  CHECK(is_json(event->data));
  for (const auto& other : event->other_versions) {
    CHECK(event->version && !other.name.empty() && other.name != *event->version);
    CHECK(other.data.data() >= body.data() &&
          other.data.data() + other.data.size() <= body.data() + body.size());
    CHECK(is_json(other.data));
  }
}

}  // namespace

void fuzz_one(std::string_view input) {
  const auto event = publish::parse_event(input, "acme");
  check(event, input);
  if (event.ok()) CHECK(is_json(input));
  const auto batch = publish::parse_batch(input, 10);
  if (!batch.ok()) return;
  CHECK(batch->size() <= 10);
  for (const auto& item : *batch) check(item, input);
}
