// Every scheme: what its sender signs is taken, and nothing that differs from it in one byte.
#include "postrider/inbox/verify.hpp"

#include <gtest/gtest.h>

#include "postrider/base/encoding.hpp"
#include "postrider/crypto/digest.hpp"
#include "postrider/crypto/ed25519.hpp"
#include "postrider/inbox/event_type.hpp"
#include "postrider/inbox/message.hpp"
#include "postrider/inbox/pick.hpp"
#include "postrider/telemetry/metrics.hpp"

namespace postrider::inbox {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

constexpr int64_t kNow = 1614265330;
const std::string kBody = R"({"id":"evt_1","test": 2432232314})";

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

std::string hex_mac(std::string_view key, std::string_view text) {
  return base::hex_encode(crypto::hmac_sha256(key, {text}).view());
}
std::string base64_mac(std::string_view key, std::string_view text) {
  return base::base64_encode(crypto::hmac_sha256(key, {text}).view());
}

const std::string kStandardSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

Case standard_case() {
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

Case svix_case() {
  Case svix = standard_case();
  svix.name = "svix";
  svix.provider = Provider::svix;
  for (auto& [name, value] : svix.headers) name.replace(0, 7, "svix");
  svix.signature_header = "svix-signature";
  svix.time_header = "svix-timestamp";
  return svix;
}

Case stripe_case() {
  return {.name = "stripe",
          .provider = Provider::stripe,
          .secret = "whsec_test_secret",
          .headers = {{"Stripe-Signature",
                       "t=1614265330,v1=" + hex_mac("whsec_test_secret", "1614265330." + kBody)}},
          .signature_header = "Stripe-Signature"};
}

Case slack_case() {
  return {.name = "slack",
          .provider = Provider::slack,
          .secret = "8f742231b10e8888abcd99yyyzzz85a5",
          .headers = {{"X-Slack-Request-Timestamp", "1614265330"},
                      {"X-Slack-Signature",
                       "v0=" + hex_mac("8f742231b10e8888abcd99yyyzzz85a5", "v0:1614265330:" + kBody)}},
          .signature_header = "X-Slack-Signature",
          .time_header = "X-Slack-Request-Timestamp"};
}

Case twilio_form_case() {
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

Case twilio_json_case() {
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

Case hmac_case() {
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

std::vector<Case> cases() {
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

std::optional<Rejection> judge(const Case& given, const std::vector<std::string>& secrets,
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

std::optional<Rejection> judge(const Case& given) {
  return judge(given, {given.secret});
}

std::string other_secret(const Case& given) {
  if (given.provider == Provider::standard || given.provider == Provider::svix)
    return "whsec_AAKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  if (given.provider == Provider::hmac) return "11112233445566778899aabbccddeeff";
  return given.secret + "x";
}

TEST(Verify, TakesWhatTheSenderSigned) {
  for (const Case& given : cases()) {
    const auto rejection = judge(given);
    EXPECT_FALSE(rejection) << given.name << ": " << rejection->detail;
  }
}

TEST(Verify, TakesAnyOfSeveralSecrets) {
  for (const Case& given : cases()) {
    EXPECT_FALSE(judge(given, {other_secret(given), given.secret})) << given.name;
    const auto rejection = judge(given, {other_secret(given), other_secret(given)});
    ASSERT_TRUE(rejection) << given.name;
    EXPECT_EQ(rejection->reason, RejectReason::signature_mismatch) << given.name;
  }
  EXPECT_EQ(judge(stripe_case(), {"whsec_one", "whsec_two"})->detail, "none of 2 active secrets matches");
}

TEST(Verify, RefusesEveryChangedByteOfTheBody) {
  for (const Case& given : cases()) {
    for (size_t i = 0; i < given.body.size(); ++i) {
      Case changed = given;
      changed.body[i] = static_cast<char>(changed.body[i] ^ 1);
      EXPECT_TRUE(judge(changed)) << given.name << " at " << i;
    }
    Case longer = given;
    longer.body += given.name == "twilio form" ? "&x=1" : " ";
    EXPECT_TRUE(judge(longer)) << given.name;
  }
}

TEST(Verify, RefusesEveryChangedByteOfTheSignature) {
  for (const Case& given : cases())
    for (size_t header = 0; header < given.headers.size(); ++header) {
      if (given.headers[header].first != given.signature_header) continue;
      for (size_t i = 0; i < given.headers[header].second.size(); ++i)
        for (const int flipped : {0x01, 0x02, 0x20}) {
          Case changed = given;
          char& c = changed.headers[header].second[i];
          c = static_cast<char>(c ^ flipped);
          EXPECT_TRUE(judge(changed)) << given.name << " at " << i << ": " << changed.headers[header].second;
        }
    }
}

TEST(Verify, RefusesWhatIsTooOldOrFromTheFuture) {
  for (const Case& given : cases()) {
    if (given.time_header.empty() && given.provider != Provider::stripe) continue;
    EXPECT_FALSE(judge(given, {given.secret}, kNow + 300)) << given.name;
    EXPECT_FALSE(judge(given, {given.secret}, kNow - 300)) << given.name;
    const auto late = judge(given, {given.secret}, kNow + 412);
    const auto early = judge(given, {given.secret}, kNow - 301);
    ASSERT_TRUE(late && early) << given.name;
    EXPECT_EQ(late->reason, RejectReason::timestamp_old);
    EXPECT_EQ(late->detail, "timestamp 412 s old");
    EXPECT_EQ(early->reason, RejectReason::timestamp_future);
  }
}

TEST(Verify, RefusesAMessageWithoutOneOfItsHeaders) {
  for (const Case& given : cases())
    for (size_t i = 0; i < given.headers.size(); ++i) {
      Case changed = given;
      changed.headers.erase(changed.headers.begin() + static_cast<ptrdiff_t>(i));
      if (given.name == "twilio JSON" && given.headers[i].first == "content-type") continue;  // says nothing
      EXPECT_TRUE(judge(changed)) << given.name << " without " << given.headers[i].first;
    }
}

TEST(Verify, RefusesWithoutAnySecret) {
  for (const Case& given : cases())
    EXPECT_EQ(judge(given, {})->reason, RejectReason::no_secret) << given.name;
}

TEST(Verify, TakesTheVectorsOfStandardWebhooks) {
  Case given = standard_case();
  given.body = R"({"test": 2432232314})";
  given.headers[0].second = "msg_p5jXN8AQM9LWM0D4loKWxJek";
  given.headers[2].second = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
  EXPECT_FALSE(judge(given));
  const std::string keys = *base::base64_decode(
      "6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==");
  const std::string public_key = "whpk_" + base::base64_encode(std::string_view(keys).substr(32));
  given.headers[2].second =
      "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==";
  EXPECT_FALSE(judge(given, {public_key}));
  EXPECT_TRUE(judge(given, {kStandardSecret}));
  given.body += " ";
  EXPECT_TRUE(judge(given, {public_key}));
}

TEST(Verify, TwilioMaySpellTheDefaultPort) {
  Case given = twilio_form_case();
  given.url = "https://example.com:443/in/x?a=1";
  EXPECT_FALSE(judge(given));
  given.url = "https://example.com:8443/in/x?a=1";
  EXPECT_TRUE(judge(given));
}

TEST(Verify, TwilioSignsNoBodyThatIsNoFormWithoutItsHash) {
  Case given = twilio_json_case();
  given.url = "https://example.com/in/x";
  EXPECT_EQ(judge(given)->reason, RejectReason::malformed_body);
}

TEST(Verify, ReasonsAreThoseOfTheMetrics) {
  const telemetry::Metrics metrics;
  for (int reason = 0; reason <= static_cast<int>(RejectReason::unknown_source); ++reason)
    EXPECT_TRUE(metrics.inbox_rejected.find(label(static_cast<RejectReason>(reason)))) << reason;
}

// ── what is picked out of a message ──

struct Picked {
  std::string body;
  Headers headers = {};
};

std::string type_of(std::string_view text, const Picked& from) {
  std::vector<http::Field> fields;
  for (const auto& [name, value] : from.headers) fields.push_back({name, value});
  Arrival arrival;
  arrival.body = from.body;
  arrival.fields = fields;
  Picker picker(arrival);
  return event_type(text, picker);
}

TEST(EventType, IsFilledFromBodyAndHeaders) {
  EXPECT_EQ(type_of("stripe.{type}", {R"({"type":"payment_intent.succeeded"})"}),
            "stripe.payment_intent.succeeded");
  EXPECT_EQ(type_of("github.{header:X-GitHub-Event}.{action}",
                    {R"({"action":"opened"})", {{"x-github-event", "issues"}}}),
            "github.issues.opened");
  EXPECT_EQ(type_of("a.{/data/object}", {R"({"data":{"object":"charge"}})"}), "a.charge");
}

TEST(EventType, IsAlwaysAType) {
  EXPECT_EQ(type_of("a.{type}", {R"({"type":"orders/create x"})"}), "a.orders_create_x");
  EXPECT_EQ(type_of("a.{type}", {R"({"type":"..x.."})"}), "a._.x._");
  EXPECT_EQ(type_of("a.{type}", {"{}"}), "a.unknown");
  EXPECT_EQ(type_of("a.{type}", {"not JSON"}), "a.unknown");
  EXPECT_EQ(type_of("{type}", {R"({"type":")" + std::string(500, 'x') + R"("})"}).size(), 128U);
}

TEST(EventType, TemplatesAreChecked) {
  EXPECT_EQ(check_type_template("stripe.{type}"), "");
  EXPECT_NE(check_type_template("stripe.{type"), "");
  EXPECT_NE(check_type_template("stripe {type}"), "");
  EXPECT_NE(check_type_template("stripe.{}"), "");
}

TEST(Message, IsKnownByItsProvidersIdOrElseByItsContent) {
  const LoadedSource stripe = loaded_source({.id = "s", .provider = Provider::stripe}, {});
  Arrival arrival;
  arrival.body = kBody;
  EXPECT_EQ(make_message(stripe, arrival).key, "evt_1");
  arrival.body = "{}";
  const NewMessage unnamed = make_message(stripe, arrival);
  EXPECT_TRUE(unnamed.key.starts_with("content:"));
  EXPECT_FALSE(unnamed.provider_id);
  arrival.body = "{ }";
  EXPECT_NE(make_message(stripe, arrival).key, unnamed.key);
}

TEST(Message, KeepsTheHeadersThatMatterAndNoCredentials) {
  Source source{.id = "s", .provider = Provider::github};
  source.settings.headers = {"x-mine", "authorization"};
  const std::vector<http::Field> fields = {{"X-GitHub-Event", "push"},
                                           {"Authorization", "Bearer x"},
                                           {"X-Mine", "1"},
                                           {"Cookie", "a"},
                                           {"X-Other", "2"}};
  Arrival arrival;
  arrival.fields = fields;
  EXPECT_EQ(make_message(loaded_source(source, {}), arrival).headers,
            R"({"x-github-event":"push","x-mine":"1"})");
}

TEST(Message, LongKeysAreReplacedByTheirHash) {
  EXPECT_EQ(storable_key("short"), "short");
  EXPECT_EQ(storable_key(std::string(256, 'x')).size(), 71U);
  EXPECT_EQ(storable_key(std::string("a\0b", 3)).size(), 71U);
}

TEST(Message, BodiesAreText) {
  const LoadedSource source = loaded_source({.id = "s"}, {});
  EXPECT_FALSE(unfit_body(source, "grüße"));
  EXPECT_TRUE(unfit_body(source, "\xff"));
  EXPECT_TRUE(unfit_body(source, std::string_view("a\0", 2)));
  EXPECT_EQ(unfit_body(source, std::string((1 << 20) + 1, ' '))->reason, RejectReason::body_too_large);
}

}  // namespace
}  // namespace postrider::inbox
