// /v1/outboxes/{outbox}/capture: change data capture of an outbox.
#include "postrider/api/resources/outbox_database.hpp"
#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/outbox/capture_state.hpp"

namespace postrider::api {

namespace {

constexpr int32_t kMibMax = 1 << 20;
constexpr int64_t kMib = 1 << 20;
constexpr size_t kModeBytesMax = 16;

std::string capture_json(const std::string& outbox, const outbox::CaptureState& state) {
  JsonObject json;
  json.add("outbox", outbox)
      .add("mode", state.mode)
      .add("state", state.state)
      .add("reason", state.reason)
      .add("since", state.since)
      .add("slot", state.slot)
      .add("behind_bytes", state.behind_bytes)
      .add("retained_bytes", state.retained_bytes)
      .add("retained_mib_max", state.bytes_max / kMib)
      .add("lost_at", state.lost_at);
  return json.text();
}

Task<Response> respond(Call& call, pg::Batch batch, pg::Batch note) {
  const std::string id = call.parameter("outbox");
  auto running = run_there(call, id, std::move(batch), std::move(note));
  const auto results = co_await running;
  if (!results) co_return call.reject(results.error());
  try {
    co_return Response::json(200, capture_json(id, outbox::read_capture_state(results->back())));
  } catch (const pg::Error& error) {
    co_return call.reject(unusable_outbox(error));
  }
}

Task<Response> show(Call& call) {
  auto responding = respond(call, outbox::capture_state_batch(), pg::Batch());
  co_return co_await responding;
}

Task<Response> change(Call& call) {
  const auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  outbox::CaptureChange wanted;
  std::optional<int32_t> mib;
  FieldProblems problems;
  Fields fields(*document, "", problems);
  fields.read("mode", wanted.mode, {.bytes_max = kModeBytesMax});
  fields.read("retained_mib_max", mib, {.min = 1, .max = kMibMax});
  fields.finish();
  if (wanted.mode && *wanted.mode != "table" && *wanted.mode != "cdc")
    fields.reject("mode", "must be table or cdc");
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  if (mib) wanted.bytes_max = *mib * kMib;
  auto responding = respond(call, outbox::capture_state_batch(wanted),
                            outbox::capture_note(call.caller(), call.parameter("outbox"), wanted));
  co_return co_await responding;
}

}  // namespace

void add_outbox_capture_routes(Routes& routes) {
  routes.add(Method::get, "/v1/outboxes/{outbox}/capture", Access::operate, show);
  routes.add(Method::patch, "/v1/outboxes/{outbox}/capture", Access::administer, change);
}

}  // namespace postrider::api
