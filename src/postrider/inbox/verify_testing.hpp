// Requests as every provider's sender signs them; shared by the tests of this folder.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "postrider/base/encoding.hpp"
#include "postrider/crypto/digest.hpp"
#include "postrider/inbox/verify.hpp"

namespace postrider::inbox {

using Headers = std::vector<std::pair<std::string, std::string>>;

constexpr int64_t kNow = 1614265330;
inline const std::string kBody = R"({"id":"evt_1","test": 2432232314})";

struct Case {
  std::string name;
  Provider provider;
  std::string secret;
  Headers headers;
  std::string body = kBody;
  std::string url = "https://example.com/in/x";
  std::string signature_header;
  std::string time_header = {};  // empty: the scheme has none
  HmacScheme scheme = {};
};

inline std::string hex_mac(std::string_view key, std::string_view text) {
  return base::hex_encode(crypto::hmac_sha256(key, {text}).view());
}
inline std::string base64_mac(std::string_view key, std::string_view text) {
  return base::base64_encode(crypto::hmac_sha256(key, {text}).view());
}

inline const std::string kStandardSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

inline Case standard_case() {
  const std::string key = *base::base64_decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
  return {.name = "standard",
          .provider = Provider::standard,
          .secret = kStandardSecret,
          .headers = {{"webhook-id", "msg_1"},
                      {"webhook-timestamp", "1614265330"},
                      {"webhook-signature", "v1," + base64_mac(key, "msg_1.1614265330." + kBody)}},
          .signature_header = "webhook-signature",
          .time_header = "webhook-timestamp"};
}

inline Case svix_case() {
  Case svix = standard_case();
  svix.name = "svix";
  svix.provider = Provider::svix;
  for (auto& [name, value] : svix.headers) name.replace(0, 7, "svix");
  svix.signature_header = "svix-signature";
  svix.time_header = "svix-timestamp";
  return svix;
}

inline Case stripe_case() {
  return {.name = "stripe",
          .provider = Provider::stripe,
          .secret = "whsec_test_secret",
          .headers = {{"Stripe-Signature",
                       "t=1614265330,v1=" + hex_mac("whsec_test_secret", "1614265330." + kBody)}},
          .signature_header = "Stripe-Signature"};
}

inline Case slack_case() {
  return {.name = "slack",
          .provider = Provider::slack,
          .secret = "8f742231b10e8888abcd99yyyzzz85a5",
          .headers = {{"X-Slack-Request-Timestamp", "1614265330"},
                      {"X-Slack-Signature",
                       "v0=" + hex_mac("8f742231b10e8888abcd99yyyzzz85a5", "v0:1614265330:" + kBody)}},
          .signature_header = "X-Slack-Signature",
          .time_header = "X-Slack-Request-Timestamp"};
}

inline Case twilio_form_case() {
  const std::string text =
      "https://example.com/in/x?a=1BodyHi thereFrom+1ToA"
      "ToB";
  return {.name = "twilio form",
          .provider = Provider::twilio,
          .secret = "12345678901234567890123456789012",
          .headers = {{"content-type", "application/x-www-form-urlencoded; charset=utf-8"},
                      {"X-Twilio-Signature",
                       base::base64_encode(
                           crypto::hmac_sha1("12345678901234567890123456789012", {text}).view())}},
          .body = "To=B&From=%2B1&To=A&Body=Hi+there&To=B",
          .url = "https://example.com/in/x?a=1",
          .signature_header = "X-Twilio-Signature"};
}

inline Case twilio_json_case() {
  const std::string url =
      "https://example.com/in/x?bodySHA256=" + base::hex_encode(crypto::sha256(kBody).view());
  return {
      .name = "twilio JSON",
      .provider = Provider::twilio,
      .secret = "12345678901234567890123456789012",
      .headers = {{"content-type", "application/json"},
                  {"X-Twilio-Signature",
                   base::base64_encode(crypto::hmac_sha1("12345678901234567890123456789012", {url}).view())}},
      .url = url,
      .signature_header = "X-Twilio-Signature"};
}

inline Case hmac_case() {
  HmacScheme scheme;
  scheme.header = "x-acme";
  scheme.prefix = "sig=";
  scheme.signed_text = "{timestamp}|{header:x-id}|{body}";
  scheme.hash = Hash::sha512;
  scheme.encoding = SignatureEncoding::base64;
  scheme.key = KeyForm::hex;
  scheme.timestamp_header = "x-time";
  const std::string key = *base::hex_decode("00112233445566778899aabbccddeeff");
  const std::string text = "1614265330|7|" + kBody;
  return {.name = "hmac",
          .provider = Provider::hmac,
          .secret = "00112233445566778899aabbccddeeff",
          .headers = {{"x-time", "1614265330"},
                      {"x-id", "7"},
                      {"x-acme", "sig=" + base::base64_encode(crypto::hmac_sha512(key, {text}).view())}},
          .signature_header = "x-acme",
          .time_header = "x-time",
          .scheme = scheme};
}

inline std::vector<Case> cases() {
  return {standard_case(),
          svix_case(),
          stripe_case(),
          {.name = "github",
           .provider = Provider::github,
           .secret = "It's a Secret",
           .headers = {{"X-Hub-Signature-256", "sha256=" + hex_mac("It's a Secret", kBody)}},
           .signature_header = "X-Hub-Signature-256"},
          {.name = "shopify",
           .provider = Provider::shopify,
           .secret = "shpss_0123456789",
           .headers = {{"X-Shopify-Hmac-SHA256", base64_mac("shpss_0123456789", kBody)}},
           .signature_header = "X-Shopify-Hmac-SHA256"},
          slack_case(),
          twilio_form_case(),
          twilio_json_case(),
          hmac_case()};
}

inline std::optional<InboundRejection> inspect(const Case& given, const std::vector<std::string>& secrets,
                                               int64_t now = kNow) {
  std::vector<http::Field> fields;
  for (const auto& [name, value] : given.headers) fields.push_back({name, value});
  Arrival arrival;
  arrival.body = given.body;
  arrival.fields = fields;
  arrival.public_url = given.url;
  arrival.now = base::Timestamp(std::chrono::seconds(now));
  Verification how;
  how.provider = given.provider;
  how.scheme = given.scheme;
  how.signed_pieces = *parse_template(given.scheme.signed_text);
  std::vector<VerifyKey> keys;
  for (const auto& secret : secrets) keys.push_back(*key_of_secret(given.provider, given.scheme, secret));
  return verify(how, keys, arrival);
}

inline std::optional<InboundRejection> inspect(const Case& given) {
  return inspect(given, {given.secret});
}

inline std::string other_secret(const Case& given) {
  if (given.provider == Provider::standard || given.provider == Provider::svix)
    return "whsec_AAKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  if (given.provider == Provider::hmac) return "11112233445566778899aabbccddeeff";
  return given.secret + "x";
}

}  // namespace postrider::inbox
