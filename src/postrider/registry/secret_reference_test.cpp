// The references that may be used, and their targets. Only the policy keeps an API user from reading files.
#include "postrider/registry/secret_reference.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace postrider::registry {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct SecretReferences : testing::Test {
  SecretReferences() {
    char name[] = "/tmp/pr-secrets-XXXXXX";
    root = mkdtemp(name);
    fs::create_directories(root / "secrets" / "deep");
    write("secrets/one", "whsec_abc\n");
    write("outside", "not for you");
    policy.directories = {(root / "secrets").string()};
    policy.environment_prefix = "HOOK_SECRET_";
  }
  ~SecretReferences() override { fs::remove_all(root); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(root / name) << text; }
  std::string file(const std::string& name) const { return "file:" + (root / name).string(); }
  std::string program(const std::string& text) {
    const fs::path path = root / "program";
    std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
    fs::permissions(path, fs::perms::owner_all);
    policy.programs = {path.string()};
    return path.string();
  }
  std::string error(const std::string& reference) const {
    const auto found = resolve(policy, reference);
    return found ? "found " + *found : found.error();
  }

  fs::path root;
  ReferencePolicy policy;
};

TEST_F(SecretReferences, NothingIsAllowedUnlessTheOperatorOpensIt) {
  const ReferencePolicy closed;
  EXPECT_THAT(*why_not(closed, "file:/etc/shadow"), HasSubstr("does not read secrets from files"));
  EXPECT_THAT(*why_not(closed, "env:HOME"), HasSubstr("does not read secrets from its environment"));
  EXPECT_THAT(*why_not(closed, "exec:/bin/id"), HasSubstr("does not run programs for secrets"));
  EXPECT_THAT(*why_not_secret(nullptr, crypto::SignatureScheme::sha256, "file:/etc/shadow/and/more"),
              HasSubstr("does not read secrets from files"));
}

TEST_F(SecretReferences, FilesMustBeBelowADirectoryByNameAndInFact) {
  EXPECT_EQ(error(file("secrets/one")), "found whsec_abc");
  EXPECT_THAT(error("file:/etc/passwd"), HasSubstr("outside the directories"));
  EXPECT_THAT(error(file("secrets/../outside")), HasSubstr("outside the directories"));
  EXPECT_THAT(error(file("secrets-of-others/x")), HasSubstr("outside the directories"));
  EXPECT_THAT(error(file("secrets")), HasSubstr("outside the directories"));
  EXPECT_THAT(error(file("secrets/deep")), HasSubstr("not a regular file"));
  EXPECT_THAT(error(file("secrets/none")), HasSubstr("cannot be read"));
  fs::create_symlink(root / "outside", root / "secrets" / "link");
  EXPECT_THAT(error(file("secrets/link")), HasSubstr("leaves the directories"));
  ASSERT_EQ(mkfifo((root / "secrets" / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(error(file("secrets/pipe")), HasSubstr("not a regular file")) << "and does not hang";
  write("secrets/large", std::string(10'000, 'x'));
  EXPECT_THAT(error(file("secrets/large")), HasSubstr("too large"));
  write("secrets/empty", "\n");
  EXPECT_THAT(error(file("secrets/empty")), HasSubstr("it is empty"));
}

TEST_F(SecretReferences, VariablesMustBeginWithThePrefixAndAreNeverPostridersOwn) {
  setenv("HOOK_SECRET_A", " value ", 1);
  setenv("POSTRIDER_MASTER_KEY_OF_TEST", "secret", 1);
  EXPECT_EQ(error("env:HOOK_SECRET_A"), "found value");
  EXPECT_THAT(error("env:HOME"), HasSubstr("does not begin with HOOK_SECRET_"));
  EXPECT_THAT(error("env:HOOK_SECRET_NOT_THERE"), HasSubstr("is not set"));
  policy.environment_prefix = "POST";
  EXPECT_THAT(error("env:POSTRIDER_MASTER_KEY_OF_TEST"), HasSubstr("does not begin with"));
}

TEST_F(SecretReferences, ProgramsAreThoseListedWithOneHarmlessArgumentAndNoShell) {
  const std::string path = program("echo \"got:$1:$#\"");
  EXPECT_EQ(error("exec:" + path + " acme/orders"), "found got:acme/orders:1");
  EXPECT_EQ(error("exec:" + path), "found got::0");
  EXPECT_THAT(error("exec:/bin/sh"), HasSubstr("not allowed for secrets"));
  for (const char* bad : {"-rf", "a b", "$(id)", "a;b", "`id`", "a\nb", "*"})
    EXPECT_THAT(error("exec:" + path + " " + bad), HasSubstr("has an argument")) << bad;
}

TEST_F(SecretReferences, ProgramsGetNoKeysOfPostriderAndCannotHang) {
  setenv("POSTRIDER_MASTER_KEY_OF_TEST", "secret", 1);
  EXPECT_EQ(error("exec:" + program("echo \"[$POSTRIDER_MASTER_KEY_OF_TEST]\"")), "found []");
  EXPECT_THAT(error("exec:" + program("exit 3")), HasSubstr("failed (exit code 3)"));
  policy.timeout = std::chrono::milliseconds(50);
  EXPECT_THAT(error("exec:" + program("sleep 600")), HasSubstr("did not finish within 50 ms"));
}

}  // namespace
}  // namespace postrider::registry
