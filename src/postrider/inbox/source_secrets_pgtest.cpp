#include "postrider/inbox/source_secrets.hpp"

#include "postrider/registry/pgtest_fixture.hpp"

namespace postrider::inbox {
namespace {

struct SourceSecrets : registry::RegistryTest {
  SourceSecrets() {
    const auto created = run(create_source(
        link, context, caller, {.id = "github", .provider = Provider::github, .settings = {}, .secret = {}}));
    EXPECT_TRUE(created.ok());
  }
  size_t active_keys() {
    const auto source = run(find_source(link, "github"));
    return run(load_active_keys(link, keys, *source)).size();
  }
};

// A copy of the table, from a backup say, must not bring an old secret back into use.
TEST_F(SourceSecrets, TheBytesOfAnEarlierSecretDoNotOpenInTheRowOfALaterOne) {
  const std::string old_bytes = sql("select sealed from postrider.source_secret");
  const auto added = run(
      add_source_secret(link, context, caller, "github", {.secret = {}, .overlap = std::chrono::seconds(0)}));
  ASSERT_TRUE(added.ok());
  EXPECT_EQ(active_keys(), 1u);
  sql("update postrider.source_secret set sealed = '" + old_bytes + "'");
  EXPECT_EQ(active_keys(), 0u);
}

}  // namespace
}  // namespace postrider::inbox
