#include "postrider/replay/archived_line.hpp"

#include <boost/json/parse.hpp>
#include <optional>

#include "postrider/base/text.hpp"
#include "postrider/model/event_rules.hpp"

namespace postrider::replay {

namespace {

namespace json = boost::json;

constexpr size_t kDepthMax = 512;  // more than any event has

std::optional<json::value> parse(std::string_view text) {
  json::parse_options options;
  options.max_depth = kDepthMax;
  json::error_code error;
  json::value value = json::parse(json::string_view(text.data(), text.size()), error, {}, options);
  if (error) return std::nullopt;
  return value;
}

// No value for null, a missing member, or anything but text: see is_text_or_null().
std::optional<std::string_view> text_at(const json::object& object, std::string_view name) {
  const json::value* member = object.if_contains(name);
  const json::string* text = member == nullptr ? nullptr : member->if_string();
  if (text == nullptr) return std::nullopt;
  return std::string_view(text->data(), text->size());
}

bool is_text_or_null(const json::object& object, std::string_view name) {
  const json::value* member = object.if_contains(name);
  return member == nullptr || member->is_null() || member->is_string();
}

}  // namespace

bool is_outbox_row(std::string_view line) {
  return line.find("\"processed_at\":") != std::string_view::npos;
}

std::string fault_of_line(std::string_view line) {
  const auto document = parse(line);
  if (!document || !document->is_object()) return "it is not a JSON object";
  const json::object& object = document->get_object();
  for (const char* name :
       {"tenant_id", "type", "public_id", "version", "subject", "traceparent", "data", "body"})
    if (!is_text_or_null(object, name)) return std::string(name) + " is not text";
  const model::EventFields fields{.tenant_id = text_at(object, "tenant_id").value_or(""),
                                  .type = text_at(object, "type").value_or(""),
                                  .id = text_at(object, "public_id"),
                                  .version = text_at(object, "version"),
                                  .subject = text_at(object, "subject"),
                                  .traceparent = text_at(object, "traceparent"),
                                  .occurred_at = {},
                                  .written_at = {}};
  const bool is_row = is_outbox_row(line);
  const auto faults = is_row ? model::errors_of(fields) : model::errors_of_form(fields);
  if (!faults.empty()) return model::to_text(faults);
  const auto content = text_at(object, is_row ? "data" : "body").value_or("");
  if (!base::is_storable(content)) return "it has text that cannot be stored";
  if (is_row && !parse(content)) return "data is not JSON";
  return {};
}

}  // namespace postrider::replay
