#include "postrider/config/load.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "postrider/base/encoding.hpp"
#include "postrider/config/outboxes.hpp"
#include "postrider/config/settings.hpp"
#include "postrider/config/sources.hpp"
#include "postrider/config/suggest.hpp"
#include "postrider/config/toml_file.hpp"
#include "postrider/config/values.hpp"

namespace postrider::config {
namespace {

constexpr std::string_view kPrefix = "POSTRIDER_";
constexpr size_t kSecretFileBytesMax = 64 * 1024;

struct Given {
  std::string text;
  std::string from;
};

std::vector<std::string> known_names(auto name_of) {
  std::vector<std::string> names;
  for (const Setting& setting : settings()) names.push_back(name_of(setting));
  return names;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  const std::string near = nearest(word, names);
  return near.empty() ? "" : fmt::format(" Did you mean {}?", near);
}

// Variables with our prefix that are not settings: of the command line as a client, of tests, and those that
// Kubernetes puts into every pod beside a service named "postrider".
bool is_for_others(std::string_view name) {
  name.remove_prefix(kPrefix.size());
  for (const std::string_view other : {"SERVER", "KEY", "KEY_FILE", "PROFILE", "URL", "TENANT", "FAIL_POINT",
                                       "FAIL_POINT_LOG", "PORT", "SERVICE_HOST", "SERVICE_PORT"})
    if (name == other) return true;
  return name.starts_with("TEST_") || name.starts_with("PORT_") || name.starts_with("SERVICE_PORT_");
}

void reject_unknown_variables(const Environment& environment) {
  std::vector<std::string> names = known_names([](const Setting& s) { return s.environment_name(); });
  for (const Setting& setting : settings())
    if (setting.is_secret()) names.push_back(setting.environment_name() + "_FILE");
  for (auto it = environment.lower_bound(std::string(kPrefix)); it != environment.end(); ++it) {
    if (!it->first.starts_with(kPrefix)) break;
    if (std::ranges::count(names, it->first) > 0 || is_for_others(it->first)) continue;
    throw ConfigError(fmt::format("The environment variable {} is not a setting.{}", it->first,
                                  did_you_mean(it->first, names)));
  }
}

void reject_unknown_keys(const std::map<std::string, FileValue>& file) {
  const std::vector<std::string> names = known_names([](const Setting& s) { return std::string(s.key); });
  for (const auto& [key, value] : file)
    if (find_setting(key) == nullptr)
      throw ConfigError(
          fmt::format("The key {} ({}) is not a setting.{}", key, value.from, did_you_mean(key, names)));
}

void reject_unknown_flags(const std::map<std::string, std::string>& flags) {
  const std::vector<std::string> names = known_names([](const Setting& s) { return s.flag_name(); });
  for (const auto& [key, value] : flags) {
    if (find_setting(key) != nullptr) continue;
    Setting unknown;
    unknown.key = key;
    const std::string flag = unknown.flag_name();
    throw ConfigError(fmt::format("The flag {} is not a setting.{}", flag, did_you_mean(flag, names)));
  }
}

// An empty variable is one that is not set: compose files and unit files make them easily.
std::optional<std::string> variable(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  if (found == environment.end() || trimmed(found->second).empty()) return std::nullopt;
  return found->second;
}

std::optional<Given> from_credentials(const Setting& setting, const Environment& environment) {
  const std::optional<std::string> directory = variable(environment, "CREDENTIALS_DIRECTORY");
  if (!directory) return std::nullopt;
  for (const std::string& name : {"postrider." + std::string(setting.key), std::string(setting.key)}) {
    const std::string path = *directory + "/" + name;
    if (!std::filesystem::exists(path)) continue;
    const std::string from = "systemd credential " + name;
    return Given{.text = read_secret_file(path, from), .from = from};
  }
  return std::nullopt;
}

std::optional<Given> from_environment(const Setting& setting, const Environment& environment) {
  const std::string name = setting.environment_name();
  const std::optional<std::string> text = variable(environment, name);
  const std::optional<std::string> path =
      setting.is_secret() ? variable(environment, name + "_FILE") : std::nullopt;
  if (text && path) throw ConfigError(fmt::format("Set one of {} and {}_FILE, not both.", name, name));
  if (text) return Given{.text = *text, .from = "environment " + name};
  if (path) {
    const std::string from = "environment " + name + "_FILE";
    return Given{.text = read_secret_file(*path, from), .from = from};
  }
  return setting.is_secret() ? from_credentials(setting, environment) : std::nullopt;
}

FileContents read_file(const Sources& sources) {
  if (sources.file) return read_toml_file(*sources.file);
  for (const std::string& path : sources.default_files)
    if (std::filesystem::exists(path)) return read_toml_file(path);
  return {};
}

std::string shown(const Setting& setting, const std::string& text) {
  if (text.empty()) return "";
  switch (setting.secrecy) {
    case Secrecy::open:
      return std::string(trimmed(text));
    case Secrecy::masked:
      return "***";
    case Secrecy::url:
      return without_password(trimmed(text));
  }
  return "";
}

void apply(const Setting& setting, const Given& given, Config& config) {
  if (trimmed(given.text).empty()) {
    // Takes back what a lower source gave; only a setting that is unset by default can be unset.
    if (setting.default_text.empty()) return;
    throw ConfigError(fmt::format("The setting {} ({}) must not be empty.", setting.key, given.from));
  }
  const auto applied = setting.apply(config, given.text);
  if (applied.ok()) return;
  const bool is_named = applied.error().ends_with(" is none");  // the entry of a list
  const std::string value =
      setting.is_secret() || is_named ? "" : fmt::format(" and is \"{}\"", trimmed(given.text));
  throw ConfigError(
      fmt::format("The setting {} ({}) {}{}.", setting.key, given.from, applied.error(), value));
}

// Defaults that depend on other settings or on the machine.
void fill_in(Config& config) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (config.shards == 0) config.shards = std::max(1, cores / 2);
  if (config.api_threads == 0) config.api_threads = std::clamp(cores / 2, 1, 4);
  if (config.public_url.empty()) config.public_url = "http://" + config.listen.text();
  if (!config.master_key.empty() && !config.master_key_command.empty())
    throw ConfigError("Set one of master_key and master_key_command, not both.");
  if (!config.direct_database_url.empty() && config.database_url.empty())
    throw ConfigError("The setting direct_database_url needs database_url.");
  if (config.pooler_keeps_statements && config.direct_database_url.empty())
    throw ConfigError("The setting pooler_keeps_statements needs direct_database_url.");
  if (config.payload_bytes_max > config.api_body_bytes_max)
    throw ConfigError("The setting payload_bytes_max must not be above api_body_bytes_max.");
  if (config.payload_bytes_max > config.lane_bytes_max)
    throw ConfigError("The setting payload_bytes_max must not be above lane_bytes_max.");
}

}  // namespace

std::string read_secret_file(const std::string& path, const std::string& from) {
  std::ifstream file(path, std::ios::binary);
  std::string content(kSecretFileBytesMax + 1, '\0');
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (!file.is_open() || file.bad())
    throw ConfigError(fmt::format("The file {} ({}) cannot be read.", path, from));
  content.resize(static_cast<size_t>(file.gcount()));
  if (content.size() > kSecretFileBytesMax)
    throw ConfigError(fmt::format("The file {} ({}) has more than 64 KiB.", path, from));
  const std::string_view text = trimmed(content);
  if (text.empty()) throw ConfigError(fmt::format("The file {} ({}) is empty.", path, from));
  return std::string(text);
}

Environment process_environment() {
  Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view line = *entry;
    const size_t equals = line.find('=');
    if (equals != std::string_view::npos)
      environment.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return environment;
}

Loaded load(const Sources& sources) {
  reject_unknown_flags(sources.flags);
  reject_unknown_variables(sources.environment);
  const FileContents contents = read_file(sources);
  const FileTable& file = contents.values;
  reject_unknown_keys(file);

  Loaded loaded;
  for (const Setting& setting : settings()) {
    Given given{.text = std::string(setting.default_text), .from = "default"};
    const auto flag = sources.flags.find(std::string(setting.key));
    const auto in_file = file.find(std::string(setting.key));
    if (flag != sources.flags.end()) {
      given = {.text = flag->second, .from = "flag " + setting.flag_name()};
    } else if (std::optional<Given> found = from_environment(setting, sources.environment)) {
      given = std::move(*found);
    } else if (in_file != file.end()) {
      given = {.text = in_file->second.text, .from = in_file->second.from};
    }
    apply(setting, given, loaded.config);
    loaded.settings.push_back(
        {.key = std::string(setting.key), .shown = shown(setting, given.text), .from = given.from});
  }
  add_outboxes(contents.outboxes, loaded);
  add_sources(contents.sources, loaded);
  fill_in(loaded.config);
  return loaded;
}

std::string print_effective(const Loaded& loaded) {
  size_t key_width = 0;
  size_t value_width = 0;
  const auto value_of = [](const EffectiveSetting& entry) {
    const Setting* const setting = find_setting(entry.key);
    const bool is_computed = setting != nullptr && entry.from == "default" && !setting->default_note.empty();
    return is_computed ? fmt::format("({})", setting->default_note) : entry.shown;
  };
  for (const EffectiveSetting& entry : loaded.settings) {
    key_width = std::max(key_width, entry.key.size());
    value_width = std::max(value_width, std::min<size_t>(40, value_of(entry).size()));
  }
  std::string out;
  for (const EffectiveSetting& entry : loaded.settings)
    out += fmt::format("{:<{}} = {:<{}}  # {}\n", entry.key, key_width, value_of(entry), value_width,
                       entry.from);
  return out;
}

std::string print_effective_json(const Loaded& loaded) {
  std::string out = "{";
  for (const EffectiveSetting& entry : loaded.settings) {
    if (out.size() > 1) out += ',';
    out += fmt::format("\n  {}: {{\"value\": {}, \"from\": {}}}", base::json_quoted(entry.key),
                       entry.shown.empty() ? "null" : base::json_quoted(entry.shown),
                       base::json_quoted(entry.from));
  }
  return out + "\n}\n";
}

}  // namespace postrider::config
