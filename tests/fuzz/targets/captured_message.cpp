// Messages in the write-ahead log: as they are, as the plugin pgoutput frames them, and with the proof that
// emit() writes, which the owner of the database can forge. A valid message becomes one JSON object with the
// same tenant and type.
#include <boost/json/parse.hpp>
#include <string>

#include "fuzz.hpp"
#include "postrider/crypto/digest.hpp"
#include "postrider/http/client/client.hpp"
#include "postrider/outbox/captured.hpp"
#include "postrider/outbox/pgoutput.hpp"
#include "postrider/publish/envelope.hpp"

using namespace postrider;

namespace {

const std::string kKey(32, 'k');

std::string proven(std::string_view message) {
  std::string inner = kKey;
  inner.append(message);
  const auto first = crypto::sha256(inner);
  std::string outer = kKey;
  outer.append(first.view());
  return std::string(crypto::sha256(outer).view()).append(message);
}

void check(const outbox::Captured& captured) {
  outbox::OutboxRow row;
  row.event = captured.event();
  const auto error = outbox::error_of(row);
  CHECK(!error || error->size() < 2'000);
  if (error) return;
  const publish::NewEvent& event = row.event;
  const std::string id = event.id.value_or(event.given_id->public_id());
  CHECK(http::is_header("webhook-id", id) && http::is_header("traceparent", event.traceparent));
  CHECK(event.tenant_id != model::kReservedTenant);
  const std::string body = publish::envelope(event, id, base::to_rfc3339(*event.written_at));
  boost::json::parse_options options;
  options.max_depth = 300;
  boost::json::error_code failure;
  const auto document = boost::json::parse(body, failure, {}, options);
  if (failure) return;
  CHECK(document.at("tenant_id").as_string() == event.tenant_id &&
        document.at("type").as_string() == event.type);
}

}  // namespace

void fuzz_one(std::string_view input) {
  CHECK(!outbox::read_message(input, kKey));  // the proof cannot be guessed
  if (const auto captured = outbox::read_message(proven(input), kKey)) check(*captured);
  const auto change = outbox::decode(input);
  if (!change) return;
  if (const auto* emitted = std::get_if<outbox::Emitted>(&*change)) {
    CHECK(emitted->content.size() <= input.size());
    if (const auto captured = outbox::read_message(proven(emitted->content), kKey)) check(*captured);
  }
}
