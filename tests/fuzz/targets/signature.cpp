// Signature headers of inbound webhooks, for every provider: with a key that the sender does not have nothing
// passes, and with the right one nothing passes whose body was changed.
//
// An input is header lines ("name: value"), an empty line, the body.
#include <array>
#include <string>
#include <vector>

#include "fuzz.hpp"
#include "postrider/inbox/verify.hpp"

using namespace postrider;
using namespace postrider::inbox;

namespace {

// 2021-02-25T15:02:10Z, the time of the seeds.
constexpr base::Timestamp kNow{std::chrono::seconds(1'614'265'330)};
const std::string kSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
constexpr std::array kProviders{Provider::standard, Provider::svix,  Provider::stripe, Provider::github,
                                Provider::shopify,  Provider::slack, Provider::twilio, Provider::hmac};

struct Message {
  std::vector<http::Field> fields;
  std::string_view body;
};

Message read(std::string_view input) {
  Message message;
  while (!input.empty()) {
    const std::string_view line = input.substr(0, input.find('\n'));
    input.remove_prefix(std::min(input.size(), line.size() + 1));
    if (line.empty()) break;
    const size_t colon = line.find(": ");
    if (colon == std::string_view::npos) continue;
    message.fields.push_back({line.substr(0, colon), line.substr(colon + 2)});
  }
  message.body = input;
  return message;
}

Verification how(Provider provider) {
  Verification verification;
  verification.provider = provider;
  verification.scheme.signed_text = "{timestamp}.{header:x-id}.{body}";
  verification.scheme.timestamp_header = "x-timestamp";
  verification.signed_pieces = *parse_template(verification.scheme.signed_text);
  return verification;
}

bool is_genuine(Provider provider, const std::string& key, const Message& message) {
  const VerifyKey keys[] = {{key, false}};
  const Arrival arrival{message.body, message.fields, "https://example.com/in/x", kNow};
  const auto rejection = verify(how(provider), keys, arrival);
  if (rejection) CHECK(!label(rejection->reason).empty());
  return !rejection;
}

}  // namespace

void fuzz_one(std::string_view input) {
  static_cast<void>(parse_template(input));
  const Message message = read(input);
  for (const Provider provider : kProviders) {
    const auto key = key_of_secret(provider, HmacScheme{}, kSecret);
    CHECK(key);
    CHECK(!is_genuine(provider, "a key that is never used", message));
    if (!is_genuine(provider, key->bytes, message)) continue;
    std::string changed(message.body);
    changed += '!';
    CHECK(!is_genuine(provider, key->bytes, {message.fields, changed}));
  }
}
