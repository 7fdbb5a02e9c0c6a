// Chooses the server and the key of a command.
#include "postrider/cli/invocation.hpp"
#include "postrider/cli/profiles.hpp"

namespace postrider::cli {

namespace {

std::optional<std::string> variable(const config::Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  if (found == environment.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

class Choosing {
 public:
  explicit Choosing(const Invocation& in) : in_(in) {}

  ServerChoice choose() {
    take_profile();
    take_url();
    take_key();
    if (const auto file = in_.value("--ca-file")) choice_.options.ca_file = *file;
    return std::move(choice_);
  }

 private:
  std::optional<std::string> either(const char* flag, const char* name) const {
    const auto value = in_.value(flag);
    return value ? value : variable(in_.environment(), name);
  }

  void take_profile() {
    const Profiles profiles = load_profiles(profiles_path(in_.environment()));
    const auto named = either("--profile", "POSTRIDER_PROFILE");
    const std::string name = named.value_or(profiles.current);
    const auto found = profiles.servers.find(name);
    if (found == profiles.servers.end()) {
      if (!named) return;
      throw Misuse("Unknown profile `" + name + "`. Run `postrider profile list` to see your profiles.");
    }
    choice_.options = found->second;
    choice_.profile = name;
    if (!choice_.options.key.empty()) choice_.key_from = "profile `" + name + "`";
  }

  // A profile's key is for the profile's server alone.
  void take_url() {
    const auto url = either("--server", "POSTRIDER_SERVER");
    if (!url) return;
    if (*url != choice_.options.url && !choice_.options.key.empty()) {
      choice_.options.key.clear();
      choice_.key_from.clear();
      choice_.key_withheld_from = choice_.profile;
    }
    choice_.options.url = *url;
  }

  void set_key(std::string key, std::string from) {
    choice_.options.key = std::move(key);
    choice_.key_from = std::move(from);
  }

  void take_key() {
    if (const auto key = in_.value("--key")) return set_key(*key, "--key");
    if (const auto file = in_.value("--key-file")) return set_key(read_secret(*file), "--key-file");
    if (const auto key = variable(in_.environment(), "POSTRIDER_KEY")) return set_key(*key, "POSTRIDER_KEY");
    if (const auto file = variable(in_.environment(), "POSTRIDER_KEY_FILE"))
      return set_key(read_secret(*file), "POSTRIDER_KEY_FILE");
    if (!choice_.options.key.empty()) return;
    if (const auto key = variable(in_.environment(), "POSTRIDER_ADMIN_KEY"))
      set_key(*key, "POSTRIDER_ADMIN_KEY");
  }

  const Invocation& in_;
  ServerChoice choice_;
};

}  // namespace

ServerChoice choose_server(const Invocation& invocation) {
  return Choosing(invocation).choose();
}

}  // namespace postrider::cli
