// Flags over environment over file. Whatever cannot be understood stops the start with a sentence that names
// it.
#pragma once

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/config/config.hpp"

namespace postrider::config {

// what() is a sentence for the operator, and never contains a secret.
struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Environment = std::map<std::string, std::string>;
Environment process_environment();

struct Sources {
  std::map<std::string, std::string> flags;  // setting key → text, for what the command line gave
  Environment environment;
  // --config. Without it the first that exists of ./postrider.toml and /etc/postrider/postrider.toml.
  std::optional<std::string> file;
  std::vector<std::string> default_files{"postrider.toml", "/etc/postrider/postrider.toml"};
};

// One setting as it ended up, in the order of the table.
struct EffectiveSetting {
  std::string key;
  std::string shown;  // secrets masked
  std::string from;  // "default", "flag --listen", "environment POSTRIDER_LISTEN", "file postrider.toml:3", …
};

struct Loaded {
  Config config;
  std::vector<EffectiveSetting> settings;
};

// Throws ConfigError.
Loaded load(const Sources& sources);

// A table for people: key = value, and where it came from.
std::string print_effective(const Loaded& loaded);
std::string print_effective_json(const Loaded& loaded);

// The master key's text: the setting, or what master_key_command prints (run by /bin/sh, killed after
// `timeout`). No value if neither is set. Throws ConfigError if the command fails, hangs or prints nothing.
std::optional<std::string> resolve_master_key(const Config& config, std::chrono::milliseconds timeout);

}  // namespace postrider::config
