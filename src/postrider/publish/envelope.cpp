#include "postrider/publish/envelope.hpp"

#include "postrider/base/encoding.hpp"

namespace postrider::publish {

namespace {

void append_text(std::string& out, std::string_view name, std::string_view value) {
  base::append_json_escaped(out.append(name), value);
  out += '"';
}

struct Sent {
  std::optional<std::string_view> version;
  std::string_view data;
};

std::string wrap(const NewEvent& event, const Sent& sent, std::string_view public_id,
                 std::string_view created_at) {
  constexpr size_t kFrameBytes = 160;
  std::string out;
  out.reserve(kFrameBytes + event.type.size() + event.tenant_id.size() + sent.data.size());
  append_text(out, "{\"id\":\"", public_id);
  append_text(out, ",\"type\":\"", event.type);
  if (sent.version) append_text(out, ",\"version\":\"", *sent.version);
  append_text(out, ",\"tenant_id\":\"", event.tenant_id);
  append_text(out, ",\"created_at\":\"", created_at);
  out.append(",\"data\":").append(sent.data).append("}");
  return out;
}

}  // namespace

std::string envelope(const NewEvent& event, std::string_view public_id, std::string_view created_at) {
  return wrap(event, {event.version, event.data}, public_id, created_at);
}

std::string envelope(const NewEvent& event, const EventVersion& version, std::string_view public_id,
                     std::string_view created_at) {
  return wrap(event, {version.name, version.data}, public_id, created_at);
}

std::string publish_response(const NewEvent& event, std::string_view public_id, std::string_view created_at,
                             int64_t deliveries) {
  std::string out;
  append_text(out, "{\"id\":\"", public_id);
  append_text(out, ",\"type\":\"", event.type);
  append_text(out, ",\"tenant_id\":\"", event.tenant_id);
  append_text(out, ",\"created_at\":\"", created_at);
  out.append(",\"deliveries\":").append(std::to_string(deliveries)).append("}");
  return out;
}

}  // namespace postrider::publish
