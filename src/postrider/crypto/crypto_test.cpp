#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "postrider/base/encoding.hpp"
#include "postrider/crypto/digest.hpp"
#include "postrider/crypto/ed25519.hpp"
#include "postrider/crypto/random.hpp"

namespace postrider::crypto {
namespace {

using base::hex_decode;
using base::hex_encode;

TEST(Sha256, MatchesTheStandardsVectors) {
  EXPECT_EQ(hex_encode(sha256("").view()),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex_encode(sha256("abc").view()),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

struct HmacVector {
  std::string key, data, sha256;
};

// RFC 4231, cases 1, 2, 3 and 6.
const HmacVector hmac_vectors[] = {
    {std::string(20, '\x0b'), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
    {"Jefe", "what do ya want for nothing?",
     "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
    {std::string(20, '\xaa'), std::string(50, '\xdd'),
     "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
    {std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First",
     "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
};

TEST(HmacSha256, MatchesRfc4231HoweverTheDataIsCut) {
  for (const HmacVector& vector : hmac_vectors) {
    EXPECT_EQ(hex_encode(hmac_sha256(vector.key, {vector.data}).view()), vector.sha256);
    const std::string_view data = vector.data;
    EXPECT_EQ(hex_encode(hmac_sha256(vector.key, {data.substr(0, 3), "", data.substr(3)}).view()),
              vector.sha256);
  }
}

TEST(HmacSha256, AnEmptyKeyIsAKeyAndNotTheOneBefore) {
  hmac_sha256("the key before", {"data"});
  EXPECT_EQ(hex_encode(hmac_sha256("", {""}).view()),
            "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
  EXPECT_EQ(hex_encode(hmac_sha256(std::string_view(), {}).view()),
            "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST(HmacSha256, ThreadsDoNotDisturbEachOther) {
  const auto sign_many = [](const HmacVector& vector, int& wrong) {
    for (int i = 0; i < 2'000; ++i)
      wrong += hex_encode(hmac_sha256(vector.key, {vector.data}).view()) != vector.sha256;
  };
  int wrong[4] = {};
  {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&, i] { sign_many(hmac_vectors[i], wrong[i]); });
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_THAT(wrong, testing::Each(0));
}

TEST(HmacSha1, MatchesRfc2202) {
  EXPECT_EQ(hex_encode(hmac_sha1("Jefe", {"what do ya want ", "for nothing?"}).view()),
            "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
}

TEST(ConstantTimeEqual, ComparesContentAndLength) {
  EXPECT_TRUE(constant_time_equal("", ""));
  EXPECT_TRUE(constant_time_equal("abc", "abc"));
  EXPECT_FALSE(constant_time_equal("abc", "abd"));
  EXPECT_FALSE(constant_time_equal("abc", "ab"));
  EXPECT_FALSE(constant_time_equal("", "a"));
}

TEST(RandomBytes, HaveTheirLengthAndDiffer) {
  EXPECT_EQ(random_bytes(0), "");
  EXPECT_EQ(random_bytes(33).size(), 33u);
  EXPECT_NE(random_bytes(32), random_bytes(32));
}

struct Ed25519Vector {
  std::string_view seed, public_key, message, signature;
};

// RFC 8032, 7.1, tests 1 to 3.
const Ed25519Vector ed25519_vectors[] = {
    {"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
     "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f"
     "0595bbe24"
     "655141438e7a100b"},
    {"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
     "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2ea"
     "eb4302aee"
     "b00d291612bb0c00"},
    {"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
     "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e"
     "9716ed28d"
     "c027beceea1ec40a"},
};

TEST(Ed25519, MatchesRfc8032) {
  for (const Ed25519Vector& vector : ed25519_vectors) {
    const auto key = Ed25519Key::from_seed(*hex_decode(vector.seed));
    ASSERT_TRUE(key);
    EXPECT_EQ(hex_encode(key->public_key().view()), vector.public_key);
    const std::string message = *hex_decode(vector.message);
    const Ed25519Signature signature = key->sign(message);
    EXPECT_EQ(hex_encode(signature.view()), vector.signature);
    EXPECT_TRUE(ed25519_verify(key->public_key().view(), message, signature.view()));
  }
}

TEST(Ed25519, RefusesWhatIsNotSigned) {
  const auto key = Ed25519Key::from_seed(std::string(32, 's'));
  const std::string public_key(key->public_key().view());
  const std::string signature(key->sign("message").view());
  std::string changed = signature;
  changed[5] ^= 1;
  EXPECT_FALSE(ed25519_verify(public_key, "messagf", signature));
  EXPECT_FALSE(ed25519_verify(public_key, "message", changed));
  EXPECT_FALSE(ed25519_verify(public_key, "message", signature.substr(1)));
  EXPECT_FALSE(ed25519_verify(public_key.substr(1), "message", signature));
  EXPECT_FALSE(ed25519_verify(std::string(32, '\xff'), "message", signature));
  EXPECT_FALSE(Ed25519Key::from_seed("short").has_value());
}

}  // namespace
}  // namespace postrider::crypto
