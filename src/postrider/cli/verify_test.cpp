#include "postrider/cli/verify.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "postrider/base/encoding.hpp"
#include "postrider/crypto/digest.hpp"

namespace postrider::cli {
namespace {

using crypto::SignatureScheme;
using testing::ElementsAre;
using testing::HasSubstr;

// The vectors of Standard Webhooks.
SignedRequest standard() {
  return {.headers = {{"webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"},
                      {"webhook-timestamp", "1614265330"},
                      {"webhook-signature", "v1,AAAA v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}},
          .body = R"({"test": 2432232314})",
          .secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
          .now = 1614265330};
}

SignedRequest hex(const std::string& prefix, const std::string& id_header) {
  const std::string secret = "a-secret-of-some-length";
  SignedRequest request{.headers = {{id_header, "evt_1"}, {"x-webhook-timestamp", "1000"}},
                        .body = "{}",
                        .secret = secret,
                        .now = 1000};
  request.headers["x-webhook-signature"] =
      prefix + base::hex_encode(crypto::hmac_sha256(secret, {"1000.{}"}).view());
  return request;
}

std::string wrong(const SignedRequest& request) {
  const SignatureReport report = verify_signature(request);
  EXPECT_FALSE(report.is_valid);
  std::string all;
  for (const auto& finding : report.findings) all += finding + " ";
  return all;
}

TEST(Verify, AcceptsAllFourSchemes) {
  EXPECT_TRUE(verify_signature(standard()).is_valid);
  SignedRequest asymmetric = standard();
  asymmetric.headers["webhook-signature"] =
      "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==";
  asymmetric.secret =
      "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==";
  const SignatureReport report = verify_signature(asymmetric);
  EXPECT_TRUE(report.is_valid);
  EXPECT_EQ(report.scheme, "standard-ed25519");
  asymmetric.secret = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=";
  EXPECT_TRUE(verify_signature(asymmetric).is_valid);
  EXPECT_TRUE(verify_signature(hex("v1=", "x-webhook-event-id")).is_valid);
  EXPECT_TRUE(verify_signature(hex("sha256=", "x-webhook-id")).is_valid);
}

TEST(Verify, TakesTheNextSignatureOfAnOverlap) {
  SignedRequest request = hex("v1=", "x-webhook-event-id");
  request.headers["x-webhook-signature-next"] = request.headers["x-webhook-signature"];
  request.headers["x-webhook-signature"] = "v1=00";
  EXPECT_TRUE(verify_signature(request).is_valid);
}

TEST(Verify, SaysWhichPartDiffers) {
  SignedRequest request = standard();
  request.body += "\n";
  EXPECT_THAT(wrong(request), HasSubstr("line break at its end"));
  request = standard();
  request.body = R"({"test":2432232314})";
  EXPECT_THAT(wrong(request), HasSubstr("parsed and serialized again"));
  request = standard();
  request.body = "{\n  \"test\": 2432232314\n}";
  EXPECT_THAT(wrong(request), HasSubstr("parsed and serialized again"));
  request = standard();
  request.headers["webhook-delivery-id"] = request.headers["webhook-id"];
  request.headers["webhook-id"] = "another";
  EXPECT_THAT(wrong(request), HasSubstr("The ID differs"));
  request = standard();
  request.headers["webhook-id"] = "another";
  EXPECT_THAT(wrong(request), HasSubstr("another secret, or the ID, the timestamp or the body"));
  request = standard();
  request.headers["webhook-signature"] =
      "v1," +
      base::base64_encode(
          crypto::hmac_sha256(request.secret, {"msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.", request.body})
              .view());
  EXPECT_THAT(wrong(request), HasSubstr("decodes the base64"));
  request = hex("sha256=", "x-webhook-id");
  request.headers["x-webhook-signature"] =
      "sha256=" + base::hex_encode(crypto::hmac_sha256(request.secret, {request.body}).view());
  EXPECT_THAT(wrong(request), HasSubstr("only the body was"));
}

TEST(Verify, LooksAtTheTimeAndTheHeaders) {
  SignedRequest request = standard();
  request.now += 301;
  EXPECT_THAT(wrong(request), HasSubstr("301 s old"));
  request.tolerance_seconds = 400;
  EXPECT_TRUE(verify_signature(request).is_valid);
  request = standard();
  request.headers.erase("webhook-id");
  EXPECT_THAT(verify_signature(request).findings, ElementsAre("The header webhook-id is missing."));
  request = standard();
  request.headers["webhook-signature"] = "v2,abc";
  EXPECT_THAT(wrong(request), HasSubstr("no entry that begins with v1,"));
  request = standard();
  request.secret = "short";
  EXPECT_THAT(wrong(request), HasSubstr("not valid for this scheme"));
}

TEST(Verify, NoticesASecretInQuotes) {
  SignedRequest request = standard();
  request.secret = "\"" + request.secret + "\"";
  EXPECT_THAT(wrong(request), HasSubstr("quotes around it"));
}

TEST(Verify, KnowsTheProvidersOfSources) {
  const std::string secret = "a-secret-of-some-length";
  const std::string body = R"({"a": 1})";
  SignedRequest github{.headers = {{"x-hub-signature-256",
                                    "sha256=" + base::hex_encode(crypto::hmac_sha256(secret, {body}).view())},
                                   {"x-github-delivery", "72d3162e"}},
                       .body = body,
                       .secret = secret,
                       .now = 1000};
  const SignatureReport report = verify_signature(github);
  EXPECT_TRUE(report.is_valid) << testing::PrintToString(report.findings);
  EXPECT_EQ(report.scheme, "github");
  github.body = R"({"a":1})";
  EXPECT_THAT(wrong(github), HasSubstr("parsed and serialized again"));
  SignedRequest stripe{
      .headers = {{"stripe-signature",
                   "t=1000,v1=" + base::hex_encode(crypto::hmac_sha256(secret, {"1000.", body}).view())}},
      .body = body,
      .secret = secret,
      .now = 1000};
  EXPECT_TRUE(verify_signature(stripe).is_valid);
  stripe.now = 2000;
  EXPECT_THAT(wrong(stripe), HasSubstr("timestamp_old"));
  stripe.now = 1000;
  stripe.secret = "another-secret-of-some-length";
  EXPECT_THAT(wrong(stripe), HasSubstr("another secret"));
}

}  // namespace
}  // namespace postrider::cli
