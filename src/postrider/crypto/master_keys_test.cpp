#include "postrider/crypto/master_keys.hpp"

#include <gtest/gtest.h>

#include <array>

#include "postrider/base/encoding.hpp"

namespace postrider::crypto {
namespace {

const std::string key_a = base::base64_encode(std::string(32, 'a'));
const std::string key_b = base::hex_encode(std::string(32, 'b'));

MasterKeys keys_of(const std::string& text) {
  auto keys = MasterKeys::parse(text);
  EXPECT_TRUE(keys.ok()) << keys.error();
  return std::move(keys).value();
}

TEST(MasterKeys, OpenWhatTheySealed) {
  const MasterKeys keys = keys_of(key_a);
  for (const std::string& plaintext :
       {std::string(), std::string("whsec_secret"), std::string(5'000, '\0')}) {
    const std::string sealed = keys.seal(Purpose::stored_secret, plaintext, "endpoint_secret/1");
    const auto opened = keys.open(Purpose::stored_secret, sealed, "endpoint_secret/1");
    ASSERT_TRUE(opened.ok()) << describe(opened.error());
    EXPECT_EQ(*opened, plaintext);
    EXPECT_EQ(sealed.size(), plaintext.size() + 37);
  }
}

TEST(MasterKeys, SealingTwiceGivesDifferentBytes) {
  const MasterKeys keys = keys_of(key_a);
  EXPECT_NE(keys.seal(Purpose::stored_secret, "same", "same"),
            keys.seal(Purpose::stored_secret, "same", "same"));
}

TEST(MasterKeys, AnyChangedByteIsNoticed) {
  const MasterKeys keys = keys_of(key_a);
  const std::string sealed = keys.seal(Purpose::stored_secret, "secret", "here");
  for (size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] ^= 1;
    EXPECT_FALSE(keys.open(Purpose::stored_secret, changed, "here").ok()) << i;
  }
  for (size_t length = 0; length < sealed.size(); ++length)
    EXPECT_FALSE(keys.open(Purpose::stored_secret, sealed.substr(0, length), "here").ok()) << length;
}

TEST(MasterKeys, AValueMovedToAnotherPlaceDoesNotOpen) {
  const MasterKeys keys = keys_of(key_a);
  const auto opened =
      keys.open(Purpose::stored_secret, keys.seal(Purpose::stored_secret, "secret", "endpoint_secret/1"),
                "endpoint_secret/2");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error(), OpenError::tampered);
}

TEST(MasterKeys, EachPurposeHasAKeyOfItsOwn) {
  const MasterKeys keys = keys_of(key_a);
  constexpr std::array all = {Purpose::stored_secret, Purpose::cursor, Purpose::check_value};
  static_assert(all.size() == kPurposes);
  for (const Purpose sealed_for : all)
    for (const Purpose opened_for : all) {
      const auto opened = keys.open(opened_for, keys.seal(sealed_for, "secret", "here"), "here");
      EXPECT_EQ(opened.ok(), sealed_for == opened_for);
    }
}

TEST(MasterKeys, TheKeyIdIsNotAHashOfTheKey) {
  const std::string sealed = keys_of(key_a).seal(Purpose::stored_secret, "secret", "here");
  EXPECT_NE(sealed.substr(1, 8), sha256(std::string(32, 'a')).view().substr(0, 8));
}

TEST(MasterKeys, AfterARotationOldValuesStayReadable) {
  const std::string sealed = keys_of(key_a).seal(Purpose::stored_secret, "secret", "here");
  const MasterKeys rotated = keys_of(key_b + "," + key_a);
  ASSERT_TRUE(rotated.open(Purpose::stored_secret, sealed, "here").ok());
  EXPECT_TRUE(rotated.is_outdated(sealed));
  const std::string cursor = keys_of(key_a).seal(Purpose::cursor, "cursor", "here");
  EXPECT_TRUE(rotated.open(Purpose::cursor, cursor, "here").ok());
  EXPECT_FALSE(rotated.is_outdated(rotated.seal(Purpose::stored_secret, "secret", "here")));

  const auto without_old = keys_of(key_b).open(Purpose::stored_secret, sealed, "here");
  ASSERT_FALSE(without_old.ok());
  EXPECT_EQ(without_old.error(), OpenError::unknown_key);
}

TEST(MasterKeys, TheCheckValueTellsTheWrongKey) {
  const std::string check_value = keys_of(key_a).make_check_value();
  EXPECT_TRUE(keys_of(key_a).accepts(check_value));
  EXPECT_TRUE(keys_of(key_b + "\n" + key_a + "\n").accepts(check_value));
  EXPECT_FALSE(keys_of(key_b).accepts(check_value));
  EXPECT_FALSE(keys_of(key_a).accepts("garbage"));
}

TEST(MasterKeys, RefuseTextThatIsNoKeyWithoutRepeatingIt) {
  for (const std::string& text :
       {std::string(), std::string(" ,\n"), std::string("hunter2"), base::base64_encode(std::string(31, 'a')),
        base::hex_encode(std::string(33, 'a')), key_a + ",hunter2"}) {
    const auto keys = MasterKeys::parse(text);
    ASSERT_FALSE(keys.ok()) << text;
    EXPECT_EQ(keys.error().find("hunter2"), std::string::npos);
    EXPECT_NE(keys.error().find("master key"), std::string::npos);
  }
}

TEST(MasterKeys, AGeneratedKeyIsAccepted) {
  EXPECT_NE(MasterKeys::generate(), MasterKeys::generate());
  EXPECT_TRUE(MasterKeys::parse(MasterKeys::generate()).ok());
}

}  // namespace
}  // namespace postrider::crypto
