#include "postrider/publish/event_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "postrider/base/json_scanner.hpp"

namespace postrider::publish {

namespace {

enum FieldName {
  type,
  data,
  id,
  version,
  versions,
  occurred_at,
  subject,
  tenant_id,
  traceparent,
  field_count
};
constexpr std::array<std::string_view, field_count> kNames = {
    "type", "data", "id", "version", "versions", "occurred_at", "subject", "tenant_id", "traceparent"};

constexpr size_t kErrorsMax = 20;  // an object of a million unknown fields gets no million complaints

std::string escape_pointer(std::string_view token) {
  std::string out;
  for (const char c : token) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
  return out;
}

class EventReader {
 public:
  // `pointer` leads to the object: "" or "/3".
  EventReader(std::string pointer, bool has_tenant) : pointer_(std::move(pointer)), has_tenant_(has_tenant) {}

  // False when the text is not JSON.
  bool read(base::JsonScanner& json) {
    if (json.peek() != '{') {
      std::string_view ignored;
      if (!json.value(ignored)) return false;
      complain("", "must be an object");
      return true;
    }
    json.begin_object();
    std::string_view key, raw;
    while (json.next_member(key)) {
      if (!json.value(raw)) return false;
      keep(key, raw);
    }
    return !json.has_failed();
  }

  ParsedEvent event(model::TenantId tenant) {
    NewEvent event;
    event.tenant_id = std::move(tenant);
    if (errors_.empty() || !is_broken_) fill(event);
    const bool is_reserved = event.tenant_id == model::kReservedTenant && errors_.size() == 1;
    if (!errors_.empty())
      return base::Failure{BadRequest{is_reserved ? 409 : 422, "the event is invalid", std::move(errors_)}};
    return event;
  }

 private:
  void complain(std::string_view field, std::string detail) {
    if (field.empty()) is_broken_ = true;
    if (errors_.size() == kErrorsMax) return;
    std::string pointer = pointer_;
    if (!field.empty()) pointer.append("/").append(escape_pointer(field));
    errors_.push_back({std::move(pointer), std::move(detail)});
  }

  void keep(std::string_view raw_key, std::string_view raw) {
    std::optional<std::string> unescaped;
    std::string_view key = raw_key;
    if (key.find('\\') != std::string_view::npos) {
      unescaped = base::unescape_json(raw_key);
      key = unescaped ? std::string_view(*unescaped) : std::string_view("\xEF\xBF\xBD");
    }
    const auto name = std::find(kNames.begin(), kNames.end(), key);
    if (name == kNames.end() || (!has_tenant_ && (key == "tenant_id" || key == "traceparent")))
      return complain(key.empty() ? "\"\"" : key, "unknown field");
    auto& field = raw_[static_cast<size_t>(name - kNames.begin())];
    if (!field.empty()) return complain(key, "duplicate field");
    field = raw;
  }

  // No value for a missing field, null, or an invalid value.
  std::optional<std::string> text(FieldName name) {
    const std::string_view raw = raw_[name];
    if (raw.empty() || raw == "null") return std::nullopt;
    std::optional<std::string> value;
    if (raw.front() != '"') {
      complain(kNames[name], "must be a string");
      return std::nullopt;
    }
    value = base::unescape_json(raw.substr(1, raw.size() - 2));
    if (!value || value->find('\0') != std::string::npos) {
      complain(kNames[name], "contains characters that cannot be stored");
      return std::nullopt;
    }
    return value;
  }

  bool is_absent(FieldName name) const { return raw_[name].empty() || raw_[name] == "null"; }

  void fill(NewEvent& event) {
    event.type = text(type).value_or("");
    event.version = text(version);
    if (!is_absent(versions))
      fill_versions(event);
    else if (raw_[data].empty())
      complain("data", "is required");
    else
      event.data = raw_[data];
    event.id = text(id);
    event.subject = text(subject);
    if (const auto given = text(occurred_at)) {
      event.occurred_at = base::parse_rfc3339(*given);
      if (!event.occurred_at)
        complain("occurred_at", "must be an RFC 3339 timestamp, such as 2026-11-17T10:00:00Z");
    }
    if (has_tenant_) {
      event.tenant_id = text(tenant_id).value_or("");
      // As for the header: a value without the form of W3C Trace Context is not passed on.
      if (const auto given = text(traceparent); given && is_traceparent(*given)) event.traceparent = *given;
    }
    check(event);
  }

  void check(const NewEvent& event) {
    if (is_absent(type)) complain("type", "is required");
    if (has_tenant_ && is_absent(tenant_id)) complain("tenant_id", "is required");
    for (const model::EventError& error : errors_of(event)) {
      if (!has_tenant_ && error.field == "tenant_id")
        errors_.push_back({"tenant", error.detail});  // of the path
      else if (!has_complaint(error.field))
        complain(error.field, error.detail);
    }
  }

  bool has_complaint(std::string_view field) const {
    const std::string pointer = pointer_ + "/" + escape_pointer(field);
    return std::any_of(errors_.begin(), errors_.end(),
                       [&](const FieldError& error) { return error.pointer == pointer; });
  }

  void fill_versions(NewEvent& event) {
    if (!raw_[data].empty()) complain("data", "cannot be combined with `versions`");
    if (!errors_.empty()) return;
    if (const auto wrong = read_versions(raw_[versions], event)) complain(wrong->field, wrong->detail);
  }

  std::string pointer_;
  bool has_tenant_;
  bool is_broken_ = false;  // not an object: nothing more to say
  std::array<std::string_view, field_count> raw_{};
  std::vector<FieldError> errors_;
};

BadRequest not_json(const base::JsonScanner& json) {
  return {400, json.error(), {}};
}

std::optional<VersionsError> list_versions(std::string_view versions, std::vector<EventVersion>& found) {
  base::JsonScanner json(versions);
  if (!json.begin_object())
    return VersionsError{"versions", "must be an object with the data of each version, by version name"};
  std::string_view key, raw;
  while (found.size() <= kVersionsMax && json.next_member(key) && json.value(raw)) {
    const auto name = base::unescape_json(key);
    if (!name || name->empty())
      return VersionsError{"versions", "contains an empty version name, or one that cannot be stored"};
    found.push_back({*name, raw});
  }
  if (found.empty() || found.size() > kVersionsMax)
    return VersionsError{"versions", fmt::format("must have 1 to {} versions", kVersionsMax)};
  if (!json.finish()) return VersionsError{"versions", json.error()};
  return std::nullopt;
}

}  // namespace

std::optional<VersionsError> read_versions(std::string_view versions, NewEvent& event) {
  std::vector<EventVersion> found;
  if (auto error = list_versions(versions, found)) return error;
  std::sort(found.begin(), found.end(),
            [](const EventVersion& a, const EventVersion& b) { return a.name > b.name; });
  const auto is_same = [](const EventVersion& a, const EventVersion& b) { return a.name == b.name; };
  if (std::adjacent_find(found.begin(), found.end(), is_same) != found.end())
    return VersionsError{"versions", "contains a version more than once"};
  auto chosen = found.begin();
  if (event.version)
    chosen = std::find_if(found.begin(), found.end(),
                          [&event](const EventVersion& each) { return each.name == *event.version; });
  if (chosen == found.end()) return VersionsError{"version", "must be a member of `versions`"};
  event.version = chosen->name;
  event.data = chosen->data;
  found.erase(chosen);
  event.other_versions = std::move(found);
  return std::nullopt;
}

ParsedEvent parse_event(std::string_view body, model::TenantId tenant) {
  base::JsonScanner json(body);
  EventReader reader("", false);
  if (!reader.read(json) || !json.finish()) return base::Failure{not_json(json)};
  return reader.event(std::move(tenant));
}

base::Result<std::vector<ParsedEvent>, BadRequest> parse_batch(std::string_view body, size_t events_max) {
  base::JsonScanner json(body);
  std::vector<ParsedEvent> events;
  if (json.peek() != '[') {
    std::string_view ignored;
    if (!json.value(ignored) || !json.finish()) return base::Failure{not_json(json)};
    return base::Failure{BadRequest{422, "the batch is invalid", {{"", "must be an array of events"}}}};
  }
  json.begin_array();
  size_t count = 0;
  while (json.next_element()) {
    EventReader reader("/" + std::to_string(count), true);
    if (!reader.read(json)) break;
    if (++count <= events_max) events.push_back(reader.event({}));
  }
  if (!json.finish()) return base::Failure{not_json(json)};
  if (count > events_max)
    return base::Failure{BadRequest{
        422, "the batch is invalid", {{"", fmt::format("must have at most {} events", events_max)}}}};
  return events;
}

}  // namespace postrider::publish
