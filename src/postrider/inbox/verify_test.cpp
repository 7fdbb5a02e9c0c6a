// Every scheme: what its sender signs is taken, and nothing that differs from it in one byte.
#include <gtest/gtest.h>

#include "postrider/crypto/ed25519.hpp"
#include "postrider/inbox/metrics.hpp"
#include "postrider/inbox/verify_testing.hpp"

namespace postrider::inbox {
namespace {

TEST(Verify, TakesWhatTheSenderSigned) {
  for (const Case& given : cases()) {
    const auto rejection = inspect(given);
    EXPECT_FALSE(rejection) << given.name << ": " << rejection->detail;
  }
}

TEST(Verify, TakesAnyOfSeveralSecrets) {
  for (const Case& given : cases()) {
    EXPECT_FALSE(inspect(given, {other_secret(given), given.secret})) << given.name;
    const auto rejection = inspect(given, {other_secret(given), other_secret(given)});
    ASSERT_TRUE(rejection) << given.name;
    EXPECT_EQ(rejection->reason, RejectReason::signature_mismatch) << given.name;
  }
  EXPECT_EQ(inspect(stripe_case(), {"whsec_one", "whsec_two"})->detail, "none of 2 active secrets matches");
}

TEST(Verify, RefusesEveryChangedByteOfTheBody) {
  for (const Case& given : cases()) {
    for (size_t i = 0; i < given.body.size(); ++i) {
      Case changed = given;
      changed.body[i] = static_cast<char>(changed.body[i] ^ 1);
      EXPECT_TRUE(inspect(changed)) << given.name << " at " << i;
    }
    Case longer = given;
    longer.body += given.name == "twilio form" ? "&x=1" : " ";
    EXPECT_TRUE(inspect(longer)) << given.name;
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
          EXPECT_TRUE(inspect(changed))
              << given.name << " at " << i << ": " << changed.headers[header].second;
        }
    }
}

TEST(Verify, RefusesWhatIsTooOldOrFromTheFuture) {
  for (const Case& given : cases()) {
    if (given.time_header.empty() && given.provider != Provider::stripe) continue;
    EXPECT_FALSE(inspect(given, {given.secret}, kNow + 300)) << given.name;
    EXPECT_FALSE(inspect(given, {given.secret}, kNow - 300)) << given.name;
    const auto late = inspect(given, {given.secret}, kNow + 412);
    const auto early = inspect(given, {given.secret}, kNow - 301);
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
      EXPECT_TRUE(inspect(changed)) << given.name << " without " << given.headers[i].first;
    }
}

TEST(Verify, RefusesWithoutAnySecret) {
  for (const Case& given : cases())
    EXPECT_EQ(inspect(given, {})->reason, RejectReason::no_secret) << given.name;
}

TEST(Verify, TakesTheVectorsOfStandardWebhooks) {
  Case given = standard_case();
  given.body = R"({"test": 2432232314})";
  given.headers[0].second = "msg_p5jXN8AQM9LWM0D4loKWxJek";
  given.headers[2].second = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
  EXPECT_FALSE(inspect(given));
  const std::string keys = *base::base64_decode(
      "6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==");
  const std::string public_key = "whpk_" + base::base64_encode(std::string_view(keys).substr(32));
  given.headers[2].second =
      "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==";
  EXPECT_FALSE(inspect(given, {public_key}));
  EXPECT_TRUE(inspect(given, {kStandardSecret}));
  given.body += " ";
  EXPECT_TRUE(inspect(given, {public_key}));
}

// Each costs a pass over the body for every key, before anything is verified.
TEST(Verify, RefusesMoreThanFourEd25519Signatures) {
  const auto pair = crypto::Ed25519Key::from_seed(std::string(32, 's'));
  const std::string public_key = "whpk_" + base::base64_encode(pair->public_key().view());
  const std::string good = "v1a," + base::base64_encode(pair->sign("msg_1.1614265330." + kBody).view());
  const std::string other = "v1a," + base::base64_encode(std::string(64, 'x'));
  Case given = standard_case();
  for (int others = 0; others <= 5; ++others) {
    given.headers[2].second = good;
    for (int i = 0; i < others; ++i) given.headers[2].second.insert(0, other + " ");
    const auto rejection = inspect(given, {public_key});
    EXPECT_EQ(rejection.has_value(), others > 3) << others;
    if (rejection) EXPECT_EQ(rejection->reason, RejectReason::malformed_header);
  }
}

TEST(Verify, TwilioMaySpellTheDefaultPort) {
  Case given = twilio_form_case();
  given.url = "https://example.com:443/in/x?a=1";
  EXPECT_FALSE(inspect(given));
  given.url = "https://example.com:8443/in/x?a=1";
  EXPECT_TRUE(inspect(given));
}

TEST(Verify, TwilioSignsNoBodyThatIsNoFormWithoutItsHash) {
  Case given = twilio_json_case();
  given.url = "https://example.com/in/x";
  EXPECT_EQ(inspect(given)->reason, RejectReason::malformed_body);
}

TEST(Verify, ReasonsAreThoseOfTheMetrics) {
  const telemetry::Metrics all;
  const Metrics metrics(all);
  for (int reason = 0; reason <= static_cast<int>(RejectReason::unknown_source); ++reason)
    EXPECT_TRUE(metrics.rejected.find(label(static_cast<RejectReason>(reason)))) << reason;
}

}  // namespace
}  // namespace postrider::inbox
