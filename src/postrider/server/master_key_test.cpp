#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>

#include "postrider/config/load.hpp"
#include "postrider/server/database.hpp"

namespace postrider::server {
namespace {

using testing::HasSubstr;

class MasterKey : public testing::Test {
 protected:
  MasterKey() {
    std::string name = "/tmp/master-key-XXXXXX";
    config_.data_dir = ::mkdtemp(name.data());
  }
  ~MasterKey() override { std::filesystem::remove_all(config_.data_dir); }

  std::string path() const { return config_.data_dir + "/master.key"; }
  std::string rejection(bool is_private) const {
    try {
      load_master_keys(config_, is_private);
    } catch (const config::ConfigError& error) {
      return error.what();
    }
    return "(nothing was thrown)";
  }

  config::Config config_;
};

TEST_F(MasterKey, IsMadeForThePrivatePostgresAndFoundAgain) {
  const crypto::MasterKeys made = load_master_keys(config_, true);
  struct stat info{};
  ASSERT_EQ(::stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  const crypto::MasterKeys found = load_master_keys(config_, true);
  EXPECT_EQ(made.current_id(), found.current_id());
}

TEST_F(MasterKey, IsRequiredForAConfiguredDatabase) {
  EXPECT_THAT(rejection(false), HasSubstr("POSTRIDER_MASTER_KEY"));
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(MasterKey, InAFileThatOthersCanReadIsRefused) {
  load_master_keys(config_, true);
  ::chmod(path().c_str(), 0644);
  EXPECT_THAT(rejection(true), HasSubstr("chmod 600"));
}

TEST_F(MasterKey, ThatIsConfiguredWinsOverTheFile) {
  const crypto::MasterKeys made = load_master_keys(config_, true);
  config_.master_key = std::string(64, 'a');
  EXPECT_NE(load_master_keys(config_, true).current_id(), made.current_id());
}

TEST_F(MasterKey, ThatCannotBeUsedIsNamedButNotRepeated) {
  config_.master_key = "far too short";
  EXPECT_THAT(rejection(true), HasSubstr("master_key"));
  EXPECT_THAT(rejection(true), testing::Not(HasSubstr("far too short")));
}

}  // namespace
}  // namespace postrider::server
