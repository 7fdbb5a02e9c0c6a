// The secrets that sign a delivery.
#include "postrider/delivery/attempt/lane_config.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace postrider::delivery {
namespace {

using namespace std::chrono_literals;

const std::string kOldSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

struct LaneConfigTest : testing::Test {
  LaneConfigTest() {
    char name[] = "/tmp/pr-lane-XXXXXX";
    root = mkdtemp(name);
  }
  ~LaneConfigTest() override { std::filesystem::remove_all(root); }

  // Of an active endpoint in the overlap of a rotation, once the reference was looked up.
  std::shared_ptr<const LaneConfig> rotated_to(const std::string& content) const {
    std::ofstream(root / "new") << content;
    registry::SecretResolver::Options options;
    options.policy.directories = {root.string()};
    registry::SecretResolver resolver(std::move(options));
    registry::LoadedEndpoint endpoint;
    endpoint.url = "https://example.com/";
    endpoint.secrets = {{"file:" + (root / "new").string(), std::nullopt},
                        {kOldSecret, base::Timestamp::max()}};
    auto config = make_lane_config(endpoint, &resolver);
    while (config->is_first_lookup) {
      std::this_thread::sleep_for(1ms);
      config = make_lane_config(endpoint, &resolver);
    }
    return config;
  }

  std::filesystem::path root;
};

TEST_F(LaneConfigTest, DuringARotationBothSecretsSign) {
  const auto config = rotated_to("whsec_" + std::string(32, 'A'));
  EXPECT_EQ(config->mode, LaneConfig::Mode::send);
  EXPECT_EQ(config->signer.keys.size(), 2u);
}

TEST_F(LaneConfigTest, AnOldSecretAloneDoesNotSign) {
  const auto config = rotated_to("this is no secret");
  EXPECT_EQ(config->mode, LaneConfig::Mode::hold);
  EXPECT_FALSE(config->can_sign());
  EXPECT_FALSE(config->held_reason().empty());
}

}  // namespace
}  // namespace postrider::delivery
