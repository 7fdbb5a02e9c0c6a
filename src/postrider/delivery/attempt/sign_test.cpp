#include "postrider/delivery/attempt/sign.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postrider::delivery {
namespace {

using crypto::SignatureScheme;
using crypto::SigningKey;
using testing::HasSubstr;
using testing::Not;

Signer signer_of(SignatureScheme scheme, std::initializer_list<std::string_view> secrets) {
  Signer signer{.scheme = scheme, .keys = {}};
  for (const std::string_view secret : secrets) {
    auto key = SigningKey::from_secret(scheme, secret);
    EXPECT_TRUE(key.ok()) << key.error();
    signer.keys.push_back(std::move(key).value());
  }
  return signer;
}

std::string sign(const Signer& signer, const SignInput& input) {
  std::string head;
  EXPECT_TRUE(append_signature_headers(head, signer, input));
  return head;
}

constexpr std::string_view secret_1 = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
constexpr std::string_view secret_2 = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
constexpr std::string_view private_key =
    "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==";
const SignInput published_vector{
    .event_id = "msg_p5jXN8AQM9LWM0D4loKWxJek",
    .delivery_id = "dlv_0123",
    .unix_seconds = 1614265330,
    .attempt = 3,
    .body = R"({"test": 2432232314})",
};

TEST(SignStandard, MatchesThePublishedVector) {
  EXPECT_EQ(sign(signer_of(SignatureScheme::standard, {secret_1}), published_vector),
            "webhook-id: msg_p5jXN8AQM9LWM0D4loKWxJek\r\n"
            "webhook-timestamp: 1614265330\r\n"
            "webhook-signature: v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=\r\n"
            "webhook-attempt: 3\r\n"
            "webhook-delivery-id: dlv_0123\r\n");
}

TEST(SignStandard, MatchesThePublishedEd25519Vector) {
  EXPECT_EQ(sign(signer_of(SignatureScheme::standard_ed25519, {private_key}), published_vector),
            "webhook-id: msg_p5jXN8AQM9LWM0D4loKWxJek\r\n"
            "webhook-timestamp: 1614265330\r\n"
            "webhook-signature: "
            "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+"
            "m7TBAg==\r\n"
            "webhook-attempt: 3\r\n"
            "webhook-delivery-id: dlv_0123\r\n");
}

TEST(SignStandard, SignsOncePerActiveSecretWithSingleSpaces) {
  const std::string first = sign(signer_of(SignatureScheme::standard, {secret_1}), published_vector);
  const std::string second = sign(signer_of(SignatureScheme::standard, {secret_2}), published_vector);
  const std::string both = sign(signer_of(SignatureScheme::standard, {secret_2, secret_1}), published_vector);
  const auto signature = [](const std::string& head) {
    const size_t start = head.find("v1,");
    return head.substr(start, head.find("\r\n", start) - start);
  };
  EXPECT_EQ(signature(both), signature(first) + " " + signature(second));
}

TEST(SignStandard, KeepsWhatIsInTheHeadAlready) {
  std::string head = "content-type: application/json\r\n";
  ASSERT_TRUE(
      append_signature_headers(head, signer_of(SignatureScheme::standard, {secret_1}), published_vector));
  EXPECT_THAT(head, testing::StartsWith("content-type: application/json\r\nwebhook-id: msg_"));
}

const SignInput small{.event_id = "evt_1",
                      .delivery_id = "dlv_1",
                      .unix_seconds = 1700000000,
                      .attempt = 1,
                      .body = R"({"a":1})"};
constexpr std::string_view raw_1 = "0123456789abcdef";
constexpr std::string_view raw_2 = "fedcba9876543210";
// printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac <secret>
constexpr std::string_view digest_1 = "9eb18f493f8ec135d9eb2dad817c369bb4e9cbfa818657897a7437c1cd8c3a23";
constexpr std::string_view digest_2 = "b32c46cc98bca64571d8fd1f15c9c2c492dd6883b977ebc5c859dd995d9d12ea";

TEST(SignHexV1, SignsTimestampAndBody) {
  EXPECT_EQ(sign(signer_of(SignatureScheme::hex_v1, {raw_1}), small),
            "x-webhook-event-id: evt_1\r\n"
            "x-webhook-delivery-id: dlv_1\r\n"
            "x-webhook-timestamp: 1700000000\r\n"
            "x-webhook-signature: v1=" +
                std::string(digest_1) +
                "\r\n"
                "webhook-attempt: 1\r\n"
                "webhook-delivery-id: dlv_1\r\n");
}

TEST(SignSha256, SignsTimestampAndBody) {
  EXPECT_EQ(sign(signer_of(SignatureScheme::sha256, {raw_1}), small),
            "x-webhook-id: evt_1\r\n"
            "x-webhook-timestamp: 1700000000\r\n"
            "x-webhook-signature: sha256=" +
                std::string(digest_1) +
                "\r\n"
                "webhook-attempt: 1\r\n"
                "webhook-delivery-id: dlv_1\r\n");
}

TEST(SignHex, DuringAnOverlapTheOldSecretSignsAndTheNewOneComesNext) {
  for (const auto scheme : {SignatureScheme::hex_v1, SignatureScheme::sha256}) {
    const std::string prefix = scheme == SignatureScheme::hex_v1 ? "v1=" : "sha256=";
    const std::string head = sign(signer_of(scheme, {raw_2, raw_1}), small);
    EXPECT_THAT(head, HasSubstr("x-webhook-signature: " + prefix + std::string(digest_1) + "\r\n"));
    EXPECT_THAT(head, HasSubstr("x-webhook-signature-next: " + prefix + std::string(digest_2) + "\r\n"));
    EXPECT_THAT(sign(signer_of(scheme, {raw_1}), small), Not(HasSubstr("-next")));
  }
}

TEST(SignDeathTest, WithoutAKeyIsABug) {
  EXPECT_DEATH(sign(Signer{.scheme = SignatureScheme::standard, .keys = {}}, small), "keys");
}

TEST(Sign, RefusesAnIdThatWouldBecomeMoreThanOneHeader) {
  for (const auto& [scheme, secret] :
       {std::pair{SignatureScheme::standard, secret_1},
        std::pair{SignatureScheme::standard_ed25519, private_key},
        std::pair{SignatureScheme::hex_v1, std::string_view("0123456789abcdef")},
        std::pair{SignatureScheme::sha256, std::string_view("0123456789abcdef")}}) {
    for (const std::string_view id : {std::string_view("x\r\nx-injected: 1"), std::string_view("x\ny"),
                                      std::string_view("x\0y", 3), std::string_view("x\x7f")}) {
      SignInput input = published_vector;
      input.event_id = id;
      std::string head;
      EXPECT_FALSE(append_signature_headers(head, signer_of(scheme, {secret}), input));
      EXPECT_THAT(head, Not(HasSubstr("injected")));
    }
  }
}

}  // namespace
}  // namespace postrider::delivery
