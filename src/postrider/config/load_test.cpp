#include "postrider/config/load.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "postrider/config/settings.hpp"

namespace postrider::config {
namespace {

using testing::HasSubstr;
using testing::Not;

// A directory of its own for each test.
class Load : public testing::Test {
 protected:
  Load() {
    std::string pattern = testing::TempDir() + "postrider_config_XXXXXX";
    directory_ = mkdtemp(pattern.data());
    sources_.default_files = {directory_ + "/postrider.toml"};
  }
  ~Load() override { std::filesystem::remove_all(directory_); }

  std::string write(const std::string& name, std::string_view content) {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path) << content;
    return path;
  }
  std::string error() {
    try {
      load(sources_);
    } catch (const ConfigError& thrown) {
      return thrown.what();
    }
    return "no error";
  }
  EffectiveSetting effective(std::string_view key) {
    for (const EffectiveSetting& entry : load(sources_).settings)
      if (entry.key == key) return entry;
    return {};
  }

  std::string directory_;
  Sources sources_;
};

TEST_F(Load, WithoutAnySourceGivesTheDefaultsOfTheContract) {
  const Config config = load(sources_).config;
  EXPECT_EQ(config.database_url, "");
  EXPECT_EQ(config.data_dir, "./.postrider");
  EXPECT_EQ(config.listen, (HostPort{"127.0.0.1", 8090}));
  EXPECT_EQ(config.public_url, "http://127.0.0.1:8090");
  EXPECT_EQ(config.roles, Roles{});
  EXPECT_FALSE(config.allow_http);
  EXPECT_TRUE(config.allow_networks.empty());
  EXPECT_EQ(config.allow_ports, (std::vector<PortRange>{{80, 80}, {443, 443}, {1024, 65535}}));
  EXPECT_EQ(config.buckets, 256);
  EXPECT_EQ(config.lease_seconds, 10);
  EXPECT_EQ(config.relay_poll, milliseconds(500));
  EXPECT_EQ(config.retain_events, std::chrono::hours(24 * 30));
  EXPECT_EQ(config.retain_outbox, std::chrono::hours(24 * 7));
  EXPECT_EQ(config.retain_rollups, std::chrono::hours(24 * 400));
  EXPECT_FALSE(config.create_tenants);
  EXPECT_EQ(config.log_level, LogLevel::info);
  EXPECT_EQ(config.api_body_bytes_max, 1 << 20);
  EXPECT_EQ(config.payload_bytes_max, 256 << 10);
  EXPECT_EQ(config.connections_max, 1024);
  EXPECT_EQ(config.max_in_flight, 4096);
  EXPECT_GE(config.shards, 1);
  EXPECT_GE(config.api_threads, 1);
}

TEST(Settings, HaveDefaultsThatParseAndWordsThatHelp) {
  std::set<std::string_view> keys;
  for (const Setting& setting : settings()) {
    EXPECT_TRUE(keys.insert(setting.key).second) << setting.key;
    EXPECT_THAT(std::string(setting.help), testing::EndsWith(".")) << setting.key;
    EXPECT_TRUE(!setting.default_text.empty() || !setting.default_note.empty()) << setting.key;
    Config config;
    if (!setting.default_text.empty()) {
      EXPECT_TRUE(setting.apply(config, setting.default_text).ok()) << setting.key;
    }
    EXPECT_EQ(find_setting(setting.key), &setting);
  }
  EXPECT_EQ(find_setting("lease_seconds")->environment_name(), "POSTRIDER_LEASE_SECONDS");
  EXPECT_EQ(find_setting("lease_seconds")->flag_name(), "--lease-seconds");
}

TEST_F(Load, FlagsGoOverEnvironmentOverFile) {
  write("postrider.toml", "lease_seconds = 20\nbuckets = 32\nallow_http = true\n");
  sources_.environment = {{"POSTRIDER_LEASE_SECONDS", "30"}, {"POSTRIDER_BUCKETS", "16"}, {"HOME", "/"}};
  sources_.flags = {{"lease_seconds", "40"}};
  const Loaded loaded = load(sources_);
  EXPECT_EQ(loaded.config.lease_seconds, 40);
  EXPECT_EQ(loaded.config.buckets, 16);
  EXPECT_TRUE(loaded.config.allow_http);
  EXPECT_EQ(effective("lease_seconds").from, "flag --lease-seconds");
  EXPECT_EQ(effective("buckets").from, "environment POSTRIDER_BUCKETS");
  EXPECT_EQ(effective("allow_http").from, "file " + directory_ + "/postrider.toml:3");
  EXPECT_EQ(effective("listen").from, "default");
}

TEST_F(Load, AnEmptyVariableIsNotSet) {
  sources_.environment = {{"POSTRIDER_LISTEN", ""}, {"POSTRIDER_SMTP_URL", " "}};
  EXPECT_EQ(load(sources_).config.listen.port, 8090);
}

TEST_F(Load, AnEmptyFlagTakesBackWhatIsOptional) {
  sources_.environment = {{"POSTRIDER_ALLOW_NETWORKS", "127.0.0.0/8"}};
  sources_.flags = {{"allow_networks", ""}};
  EXPECT_TRUE(load(sources_).config.allow_networks.empty());
  sources_.flags = {{"listen", ""}};
  EXPECT_EQ(error(), "The setting listen (flag --listen) must not be empty.");
}

TEST_F(Load, DefaultsOfEndpointsAreSettings) {
  EXPECT_EQ(load(sources_).config.default_on_rejected, "dead_letter");
  EXPECT_TRUE(load(sources_).config.default_retry_schedule.empty());
  EXPECT_THAT(load(sources_).config.user_agent, testing::StartsWith("postrider/"));
  sources_.flags = {{"default_on_rejected", "retry"},
                    {"default_retry_schedule", "500ms, 2m, 7d"},
                    {"user_agent", "Acme-Webhooks/2.0 (+https://acme.example)"}};
  const Config config = load(sources_).config;
  EXPECT_EQ(config.default_on_rejected, "retry");
  EXPECT_EQ(config.default_retry_schedule,
            (std::vector<milliseconds>{milliseconds(500), std::chrono::minutes(2), std::chrono::hours(168)}));
  EXPECT_EQ(config.user_agent, "Acme-Webhooks/2.0 (+https://acme.example)");
}

TEST_F(Load, TomlListsAreLists) {
  write("postrider.toml",
        "allow_networks = [\"127.0.0.0/8\", \"::1/128\"]\nallow_ports = [80, \"8000-9000\"]\n");
  const Config config = load(sources_).config;
  EXPECT_EQ(config.allow_networks.size(), 2u);
  EXPECT_EQ(config.allow_ports, (std::vector<PortRange>{{80, 80}, {8000, 9000}}));
}

TEST_F(Load, AnUnknownNameStopsTheStartAndSuggestsTheRightOne) {
  sources_.environment = {{"POSTRIDER_LISEN", "x"}};
  EXPECT_EQ(error(),
            "The environment variable POSTRIDER_LISEN is not a setting. Did you mean POSTRIDER_LISTEN?");
  sources_.environment = {{"POSTRIDER_LISTEN_FILE", "x"}};  // only secrets come from files
  EXPECT_THAT(error(), HasSubstr("POSTRIDER_LISTEN_FILE is not a setting"));
  sources_.environment.clear();
  sources_.flags = {{"lease_second", "1"}};
  EXPECT_EQ(error(), "The flag --lease-second is not a setting. Did you mean --lease-seconds?");
  sources_.flags.clear();
  const std::string path = write("postrider.toml", "\ndata_dirr = \"x\"\n");
  EXPECT_EQ(error(), "The key data_dirr (file " + path + ":2) is not a setting. Did you mean data_dir?");
}

TEST_F(Load, VariablesOfKubernetesAndOfTheClientAreLeftAlone) {
  sources_.environment = {{"POSTRIDER_PORT", "tcp://10.0.0.1:80"},    {"POSTRIDER_SERVICE_HOST", "10.0.0.1"},
                          {"POSTRIDER_PORT_80_TCP_ADDR", "10.0.0.1"}, {"POSTRIDER_SERVICE_PORT_HTTP", "80"},
                          {"POSTRIDER_URL", "http://localhost:8090"}, {"POSTRIDER_FAIL_POINT", "x:1"}};
  EXPECT_EQ(error(), "no error");
}

struct BadValue {
  std::string key, value, says;
};

TEST_F(Load, ABadValueIsNamedWithItsSource) {
  const BadValue cases[] = {
      {"lease_seconds", "soon", "must be a whole number from 2 to 300 and is \"soon\"."},
      {"lease_seconds", "1", "from 2 to 300"},
      {"listen", "8090", "must be an address and a port"},
      {"roles", "api,worker", "\"worker\" is none"},
      {"allow_networks", "10.1.1.1/8", "\"10.1.1.1/8\" is none"},
      {"retain_events", "30", "a duration with a unit"},
      {"retain_events", "5m", "at least 1h"},
      {"relay_poll", "2h", "from 10ms to 60s"},
      {"payload_bytes_max", "12", "from 1KiB to 64GiB"},
      {"payload_bytes_max", "2MiB", "must not be above api_body_bytes_max"},
      {"lane_bytes_max", "128KiB", "payload_bytes_max must not be above lane_bytes_max"},
      {"log_level", "loud", "debug, info, warn or error"},
      {"public_url", "example.com", "a URL that begins with https:// or http://"},
      {"smtp_url", "mail.example", "smtp://"},
      {"bind_address", "eth0", "an IPv4 or IPv6 address"},
      {"default_on_rejected", "ignore", "must be dead_letter, retry or pause"},
      {"default_retry_schedule", "30s,soon", "must be a list of 1 to 100 delays"},
      {"default_retry_schedule", "8d", "at most 7d each"},
      {"user_agent", "Acme\r\nx-injected: 1", "printable ASCII characters"},
      {"user_agent", std::string(257, 'a'), "must be 1 to 256"},
      {"database_url", "mysql://x", "postgres://"},
      {"direct_database_url", "postgres://x/y", "needs database_url"},
      {"pooler_keeps_statements", "true", "needs direct_database_url"},
  };
  for (const BadValue& bad : cases) {
    sources_.flags = {{bad.key, bad.value}};
    EXPECT_THAT(error(), HasSubstr(bad.says)) << bad.key;
    EXPECT_THAT(error(), HasSubstr(bad.key));
  }
}

TEST_F(Load, AFileThatIsNoTomlIsNamedWithItsLine) {
  const std::string path = write("postrider.toml", "listen = \"a:1\"\nbuckets = = 3\n");
  EXPECT_THAT(error(), HasSubstr(path + " is not valid TOML: line 2"));
  write("postrider.toml", "[listen]\nhost = \"x\"\n");
  EXPECT_THAT(error(), HasSubstr("The setting listen"));
  sources_.file = directory_ + "/absent.toml";
  EXPECT_THAT(error(), HasSubstr("absent.toml cannot be read"));
}

TEST_F(Load, SecretsComeFromFilesAndCredentialsToo) {
  const std::string key(40, 'k');
  sources_.environment = {{"POSTRIDER_ADMIN_KEY_FILE", write("admin", key + "\n")}};
  EXPECT_EQ(load(sources_).config.admin_key, key);
  EXPECT_EQ(effective("admin_key").from, "environment POSTRIDER_ADMIN_KEY_FILE");

  write("postrider.master_key", "from the credential\n");
  write("postrider.toml", "master_key = \"from the file\"\n");
  sources_.environment = {{"CREDENTIALS_DIRECTORY", directory_}};
  EXPECT_EQ(load(sources_).config.master_key, "from the credential");
  EXPECT_EQ(effective("master_key").from, "systemd credential postrider.master_key");

  sources_.environment["POSTRIDER_MASTER_KEY"] = "from the variable";
  EXPECT_EQ(load(sources_).config.master_key, "from the variable");
}

TEST_F(Load, SecretFilesThatHelpNobodyAreRefused) {
  sources_.environment = {{"POSTRIDER_ADMIN_KEY_FILE", directory_ + "/absent"}};
  EXPECT_THAT(error(), HasSubstr("absent (environment POSTRIDER_ADMIN_KEY_FILE) cannot be read"));
  sources_.environment = {{"POSTRIDER_ADMIN_KEY_FILE", write("empty", "\n")}};
  EXPECT_THAT(error(), HasSubstr("is empty"));
  sources_.environment = {{"POSTRIDER_ADMIN_KEY_FILE", write("huge", std::string(100'000, 'k'))}};
  EXPECT_THAT(error(), HasSubstr("64 KiB"));
  sources_.environment = {{"POSTRIDER_ADMIN_KEY_FILE", "x"}, {"POSTRIDER_ADMIN_KEY", "y"}};
  EXPECT_EQ(error(), "Set one of POSTRIDER_ADMIN_KEY and POSTRIDER_ADMIN_KEY_FILE, not both.");
}

TEST_F(Load, NothingSecretIsEverShown) {
  sources_.environment = {{"POSTRIDER_ADMIN_KEY", std::string(32, 'q')},
                          {"POSTRIDER_MASTER_KEY", "hunter2"},
                          {"POSTRIDER_DATABASE_URL", "postgres://app:hunter2@db/x"},
                          {"POSTRIDER_SMTP_URL", "smtps://mail:hunter2@mail.example"}};
  const Loaded loaded = load(sources_);
  for (const std::string& text : {print_effective(loaded), print_effective_json(loaded)}) {
    EXPECT_THAT(text, Not(HasSubstr("hunter2")));
    EXPECT_THAT(text, Not(HasSubstr("qqqq")));
    EXPECT_THAT(text, HasSubstr("postgres://app:***@db/x"));
    EXPECT_THAT(text, HasSubstr("environment POSTRIDER_MASTER_KEY"));
  }
  sources_.environment = {{"POSTRIDER_ADMIN_KEY", "hunter2"}};
  EXPECT_EQ(error(),
            "The setting admin_key (environment POSTRIDER_ADMIN_KEY) must have 32 characters or more.");
}

TEST_F(Load, PrintsEverySettingWithItsSource) {
  const std::string text = print_effective(load(sources_));
  EXPECT_EQ(std::ranges::count(text, '\n'), static_cast<int64_t>(settings().size()));
  EXPECT_THAT(text, testing::ContainsRegex("listen += 127.0.0.1:8090 +# default"));
  EXPECT_THAT(text, HasSubstr("(a private Postgres in data_dir)"));
}

TEST(ResolveMasterKey, TakesTheSettingOrRunsTheCommand) {
  Config config;
  EXPECT_EQ(resolve_master_key(config, seconds(10)), std::nullopt);
  config.master_key_command = "printf 'abc\\n'; exit 0";
  EXPECT_EQ(resolve_master_key(config, seconds(10)), "abc");
  config.master_key = "set";
  EXPECT_EQ(resolve_master_key(config, seconds(10)), "set");
}

TEST(ResolveMasterKey, SaysHowTheCommandFailed) {
  const std::pair<std::string, std::string> cases[] = {
      {"exit 3", "failed (exit code 3)"},
      {"kill -9 $$", "failed (signal 9)"},
      {"true", "printed nothing"},
      {"yes", "printed too much"},
      {"sleep 1000 | cat", "did not finish within 50 ms"},
  };
  for (const auto& [command, says] : cases) {
    Config config;
    config.master_key_command = command;
    const milliseconds timeout(command.starts_with("sleep") ? 50 : 20'000);
    try {
      resolve_master_key(config, timeout);
      ADD_FAILURE() << command;
    } catch (const ConfigError& thrown) {
      EXPECT_THAT(thrown.what(), HasSubstr(says)) << command;
    }
  }
}

TEST_F(Load, TakesOutboxesFromTablesOfTheFileAndMasksTheirUrls) {
  const std::string url_file = write("shop.url", "host=db password=sesame\n");
  write("postrider.toml",
        "relay_poll = \"1s\"\n[[outbox]]\nname = \"billing\"\n"
        "database_url = \"postgresql://relay:sesame@db/billing\"\n"
        "[[outbox]]\nname = \"shop\"\ndatabase_url_file = \"" +
            url_file + "\"\npoll = \"50ms\"\nretain = \"2d\"\n");
  const Loaded loaded = load(sources_);
  ASSERT_EQ(loaded.config.outboxes.size(), 2U);
  EXPECT_EQ(loaded.config.outboxes[0],
            (OutboxConfig{.name = "billing", .database_url = "postgresql://relay:sesame@db/billing"}));
  EXPECT_EQ(loaded.config.outboxes[1].database_url, "host=db password=sesame");
  EXPECT_EQ(loaded.config.outboxes[1].poll, milliseconds(50));
  EXPECT_EQ(loaded.config.outboxes[1].retain, std::chrono::hours(48));
  EXPECT_EQ(effective("outbox.billing").shown, "postgresql://relay:***@db/billing");
  EXPECT_THAT(print_effective(loaded), Not(HasSubstr("sesame")));
  EXPECT_THAT(print_effective_json(loaded), Not(HasSubstr("sesame")));
}

TEST_F(Load, RefusesAnOutboxWithASentenceThatHasNoSecret) {
  const auto complaint = [this](const std::string& table) {
    write("postrider.toml", "[[outbox]]\n" + table);
    const std::string said = error();
    EXPECT_THAT(said, Not(HasSubstr("sesame")));
    return said;
  };
  const std::string url = "database_url = \"postgresql://relay:sesame@db/billing\"\n";
  EXPECT_THAT(complaint(url), HasSubstr("name"));
  EXPECT_THAT(complaint("name = \"local\"\n" + url), HasSubstr("not local"));
  EXPECT_THAT(complaint("name = \"a\"\n"), HasSubstr("database_url"));
  EXPECT_THAT(complaint("name = \"a\"\nurl = \"x\"\n" + url), HasSubstr("is not one of an outbox"));
  EXPECT_THAT(complaint("name = \"a\"\npoll = \"1h\"\n" + url), HasSubstr("must be from"));
  EXPECT_THAT(complaint("name = \"a\"\n" + url + "[[outbox]]\nname = \"a\"\n" + url), HasSubstr("twice"));
  write("postrider.toml", "outbox = \"x\"\n");
  EXPECT_THAT(error(), HasSubstr("[[outbox]]"));
}

TEST_F(Load, TakesSourcesFromTablesOfTheFileAndMasksTheirSecrets) {
  const std::string secret_file = write("github.secret", "sesame-of-github\n");
  write(
      "postrider.toml",
      "[[source]]\nid = \"shop\"\nprovider = \"hmac\"\nsecrets = [\"sesame, one\", \"env:HOOK_TWO\"]\n"
      "headers = [\"x-topic\"]\nbody_bytes_max = 1000\nconsume = false\n"
      "forward = { tenant_id = \"acme\", type = \"shop.{type}\" }\n[source.signature]\nheader = \"x-sign\"\n"
      "[[source]]\nid = \"github\"\nprovider = \"github\"\nsecret_file = \"" +
          secret_file + "\"\n");
  const Loaded loaded = load(sources_);
  ASSERT_EQ(loaded.config.sources.size(), 2U);
  const SourceConfig& shop = loaded.config.sources[0];
  EXPECT_EQ(shop.id, "shop");
  EXPECT_EQ(shop.document,
            R"({"body_bytes_max":1000,"consume":false,"forward":{"tenant_id":"acme","type":"shop.{type}"},)"
            R"("headers":["x-topic"],"id":"shop","provider":"hmac","signature":{"header":"x-sign"}})");
  EXPECT_EQ(shop.secrets, (std::vector<std::string>{"sesame, one", "env:HOOK_TWO"}));
  EXPECT_THAT(shop.places.at("/signature/header"), HasSubstr("postrider.toml:10"));
  EXPECT_THAT(shop.places.at("/headers/0"), HasSubstr("postrider.toml:5"));
  EXPECT_EQ(loaded.config.sources[1].secrets, std::vector<std::string>{"sesame-of-github"});
  EXPECT_EQ(effective("source.github").shown, R"({"id":"github","provider":"github","secrets":["***"]})");
  EXPECT_THAT(print_effective(loaded), Not(HasSubstr("sesame")));
  EXPECT_THAT(print_effective_json(loaded), Not(HasSubstr("sesame")));
}

TEST_F(Load, RefusesASourceWithASentenceThatHasTheLineAndNoSecret) {
  const auto complaint = [this](const std::string& table) {
    write("postrider.toml", "[[source]]\n" + table);
    const std::string said = error();
    EXPECT_THAT(said, Not(HasSubstr("sesame")));
    return said;
  };
  const std::string secret = "secret = \"sesame\"\n", id = "id = \"a\"\n";
  EXPECT_THAT(complaint(secret), HasSubstr("postrider.toml:1) needs an id"));
  EXPECT_THAT(complaint("id = 7\n" + secret), HasSubstr("postrider.toml:2) must be a non-empty string"));
  EXPECT_THAT(complaint(id), HasSubstr("needs a secret"));
  EXPECT_THAT(complaint(id + secret + "secret_file = \"/x\"\n"), HasSubstr("takes one of secret"));
  EXPECT_THAT(complaint(id + "secret = \"\"\n"), HasSubstr("postrider.toml:3) must be a non-empty string"));
  EXPECT_THAT(complaint(id + "secret = [\"sesame\"]\n"), HasSubstr("The secret of the source a"));
  EXPECT_THAT(complaint(id + "secrets = [\"sesame\", 1]\n"),
              HasSubstr("must be a list of non-empty strings"));
  EXPECT_THAT(complaint(id + "secrets = \"sesame\"\n"), HasSubstr("must be a list of non-empty strings"));
  EXPECT_THAT(complaint(id + "secret_file = \"/not/there\"\n"), HasSubstr("cannot be read"));
  EXPECT_THAT(complaint(id + secret + "tolerance_seconds = 1.5\n"),
              HasSubstr("tolerance_seconds (file " + directory_ + "/postrider.toml:4)"));
  EXPECT_THAT(complaint(id + secret + "[[source]]\n" + id + secret),
              HasSubstr("postrider.toml:4) is defined twice"));
  write("postrider.toml", "source = \"x\"\n");
  EXPECT_THAT(error(), HasSubstr("[[source]]"));
  write("postrider.toml", "[[tenant]]\nid = \"x\"\n");
  EXPECT_THAT(error(), HasSubstr("there are [[outbox]] and [[source]]"));
}

}  // namespace
}  // namespace postrider::config
