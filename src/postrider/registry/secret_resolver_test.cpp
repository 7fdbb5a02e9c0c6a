// A node's view of external secrets while it resolves them.
#include "postrider/registry/secret_resolver.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace postrider::registry {
namespace {

using namespace std::chrono_literals;

struct SecretResolverTest : testing::Test {
  SecretResolverTest() {
    char name[] = "/tmp/pr-resolver-XXXXXX";
    root = mkdtemp(name);
    options.policy.directories = {root.string()};
  }
  ~SecretResolverTest() override { std::filesystem::remove_all(root); }

  std::string file(const std::string& name) const {
    std::ofstream(root / name) << "secret of " + name;
    return "file:" + (root / name).string();
  }
  // Notes each of its calls, and hangs once `hang` is there.
  std::string program() {
    const std::filesystem::path path = root / "program";
    std::ofstream(path) << "#!/bin/sh\necho x >> " << (root / "calls").string() << "\nwhile [ -e "
                        << (root / "hang").string() << " ]; do sleep 0.01; done\necho secret\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    options.policy.programs = {path.string()};
    options.policy.timeout = 60s;
    return "exec:" + path.string();
  }
  int calls() const {
    std::ifstream lines(root / "calls");
    int count = 0;
    for (std::string line; std::getline(lines, line);) ++count;
    return count;
  }
  static SecretResolver::Found find_sooner_or_later(SecretResolver& resolver, const std::string& reference) {
    for (int i = 0; i < 6'000; ++i) {
      auto found = resolver.find(reference);
      if (found.secret) return found;
      std::this_thread::sleep_for(10ms);
    }
    ADD_FAILURE() << "never found";
    return {};
  }

  std::filesystem::path root;
  SecretResolver::Options options;
};

TEST_F(SecretResolverTest, WhileASecretIsLookedUpAgainTheOldOneIsUsedAndNobodyAsksAllTheWhile) {
  const std::string reference = program();
  options.kept = 50ms;
  SecretResolver resolver(options);
  find_sooner_or_later(resolver, reference);
  std::ofstream(root / "hang") << "";
  std::this_thread::sleep_for(60ms);
  const auto before = base::BootClock::now();
  const auto found = resolver.find(reference);
  EXPECT_GT(found.ask_again, before + 50ms);
  std::filesystem::remove(root / "hang");
}

TEST_F(SecretResolverTest, MoreReferencesThanAreKeptAreEachFoundAndNotLookedUpOverAndOver) {
  options.entries_max = 3;
  SecretResolver resolver(options);
  for (int round = 0; round < 3; ++round)
    for (const char* name : {"a", "b", "c", "d"})
      EXPECT_EQ(find_sooner_or_later(resolver, file(name)).secret, "secret of " + std::string(name));
}

TEST_F(SecretResolverTest, TwoThatComeLastDoNotPushEachOtherOut) {
  options.entries_max = 3;
  SecretResolver resolver(options);
  for (const char* name : {"a", "b", "c"}) find_sooner_or_later(resolver, file(name));
  const std::string d = file("d"), e = file("e");
  bool has_d = false, has_e = false;
  for (int i = 0; i < 6'000 && !(has_d && has_e); ++i) {
    has_d |= resolver.find(d).secret.has_value();
    std::this_thread::sleep_for(5ms);
    has_e |= resolver.find(e).secret.has_value();
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_TRUE(has_d && has_e);
}

TEST_F(SecretResolverTest, AReferenceThatWaitsIsAskedForOnceHoweverManyOthersCome) {
  const std::string slow = program();
  std::ofstream(root / "hang") << "";
  options.entries_max = 2;
  SecretResolver resolver(options);
  for (int i = 0; i < 50; ++i) {
    resolver.find(slow);
    resolver.find(file("a"));
    resolver.find(file("b"));
  }
  std::filesystem::remove(root / "hang");
  find_sooner_or_later(resolver, slow);
  EXPECT_EQ(calls(), 1);
}

}  // namespace
}  // namespace postrider::registry
