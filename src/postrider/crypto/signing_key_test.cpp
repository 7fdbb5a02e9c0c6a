#include "postrider/crypto/signing_key.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "postrider/base/encoding.hpp"

namespace postrider::crypto {
namespace {

using testing::HasSubstr;
constexpr auto kAllSchemes = {SignatureScheme::standard, SignatureScheme::standard_ed25519,
                              SignatureScheme::hex_v1, SignatureScheme::sha256};

std::string whsec(size_t bytes) {
  return "whsec_" + base::base64_encode(std::string(bytes, 'k'));
}
std::string whsk(size_t bytes) {
  return "whsk_" + base::base64_encode(std::string(bytes, 'k'));
}

TEST(SignatureScheme, LabelsReadBack) {
  for (const auto scheme : kAllSchemes) EXPECT_EQ(parse_signature_scheme(label(scheme)), scheme);
  EXPECT_EQ(parse_signature_scheme("standard_ed25519"), std::nullopt);
  EXPECT_EQ(parse_signature_scheme(""), std::nullopt);
}

TEST(GenerateSecret, IsAcceptedByItsSchemeAndNeverTheSame) {
  for (const auto scheme : kAllSchemes) {
    const std::string secret = generate_secret(scheme);
    EXPECT_TRUE(SigningKey::from_secret(scheme, secret).ok()) << secret;
    EXPECT_NE(secret, generate_secret(scheme));
  }
}

TEST(SigningKey, DecodesByScheme) {
  EXPECT_EQ(SigningKey::from_secret(SignatureScheme::standard, whsec(24))->hmac_key(), std::string(24, 'k'));
  EXPECT_EQ(SigningKey::from_secret(SignatureScheme::standard, whsec(64))->hmac_key(), std::string(64, 'k'));
  // Stripe's meaning: the prefix is part of the key.
  EXPECT_EQ(SigningKey::from_secret(SignatureScheme::hex_v1, whsec(24))->hmac_key(), whsec(24));
  EXPECT_EQ(SigningKey::from_secret(SignatureScheme::sha256, "0123456789abcdef")->hmac_key(),
            "0123456789abcdef");
}

TEST(SigningKey, AcceptsAnEd25519SeedWithAndWithoutItsPublicKey) {
  const std::string_view pair =
      "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==";
  const auto from_pair = SigningKey::from_secret(SignatureScheme::standard_ed25519, pair);
  ASSERT_TRUE(from_pair.ok()) << from_pair.error();
  EXPECT_EQ(from_pair->public_text(), "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=");

  const std::string seed = base::base64_decode(pair.substr(5))->substr(0, 32);
  const auto from_seed =
      SigningKey::from_secret(SignatureScheme::standard_ed25519, "whsk_" + base::base64_encode(seed));
  ASSERT_TRUE(from_seed.ok());
  EXPECT_EQ(from_seed->public_text(), from_pair->public_text());
}

struct BadSecret {
  SignatureScheme scheme;
  std::string secret;
  std::string says;
};

TEST(SigningKey, SaysWhatIsWrongWithASecret) {
  const BadSecret bad_secrets[] = {
      {SignatureScheme::standard, "", "must begin with \"whsec_\""},
      {SignatureScheme::standard, base::base64_encode(std::string(32, 'k')), "must begin with \"whsec_\""},
      {SignatureScheme::standard, "whsec_not base64!", "valid base64"},
      {SignatureScheme::standard, "whsec_YWJjZA", "valid base64 with padding"},
      {SignatureScheme::standard, whsec(23), "24 to 64 bytes after \"whsec_\" once decoded, and has 23"},
      {SignatureScheme::standard, whsec(65), "has 65"},
      {SignatureScheme::standard_ed25519, whsec(32), "must begin with \"whsk_\""},
      {SignatureScheme::standard_ed25519,
       "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=", "not the public one"},
      {SignatureScheme::standard_ed25519, "whsk_###", "valid base64"},
      {SignatureScheme::standard_ed25519, whsk(33), "has 33"},
      {SignatureScheme::standard_ed25519, whsk(64), "does not belong to its seed"},
      {SignatureScheme::hex_v1, "tooshort", "16 to 256 characters, and has 8"},
      {SignatureScheme::sha256, std::string(257, 'x'), "has 257"},
      {SignatureScheme::sha256, "with a space in between", "printable"},
      {SignatureScheme::hex_v1, "line\r\nbreak: injected", "printable"},
      {SignatureScheme::hex_v1, "schl\xC3\xBCssel-schl\xC3\xBCssel", "printable"},
  };
  for (const BadSecret& bad : bad_secrets) {
    const auto key = SigningKey::from_secret(bad.scheme, bad.secret);
    ASSERT_FALSE(key.ok()) << bad.secret;
    EXPECT_THAT(key.error(), HasSubstr(bad.says));
    if (!bad.secret.empty()) {
      EXPECT_EQ(key.error().find(bad.secret), std::string::npos);
    }
  }
}

TEST(MaskedSecret, ShowsTooLittleToBeOfUse) {
  EXPECT_EQ(masked_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), "whsec_MfKQ\u2026LaSw");
  EXPECT_EQ(masked_secret("short"), "\u2026");
  EXPECT_EQ(masked_secret(""), "\u2026");
}

}  // namespace
}  // namespace postrider::crypto
