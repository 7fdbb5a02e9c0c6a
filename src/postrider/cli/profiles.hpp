// Servers that the command line knows by name, in $XDG_CONFIG_HOME/postrider/profiles.json (0600).
#pragma once

#include <map>
#include <optional>
#include <string>

#include "postrider/cli/remote.hpp"
#include "postrider/config/load.hpp"

namespace postrider::cli {

struct Profiles {
  std::string current;  // empty: none
  std::map<std::string, ServerOptions> servers;
};

std::string profiles_path(const config::Environment& environment);  // empty: no home directory
// No file is no profiles. Throws Misuse when the file cannot be read, is no such document, or others can read
// it.
Profiles load_profiles(const std::string& path);
void save_profiles(const std::string& path, const Profiles& profiles);

}  // namespace postrider::cli
