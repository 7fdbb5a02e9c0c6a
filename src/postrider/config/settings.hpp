// The table of settings: one row each. The command line's flags, the reference page and `postrider config`
// are made from it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "postrider/base/result.hpp"
#include "postrider/config/config.hpp"

namespace postrider::config {

enum class Secrecy {
  open,
  masked,  // never shown; may also be given as <NAME>_FILE and as a systemd credential
  url,     // the same, but only its password is hidden
};

struct Setting {
  std::string_view key;           // as in postrider.toml: "lease_seconds"
  std::string_view default_text;  // parsed like any other; empty: not set
  std::string_view default_note;  // what an empty or computed default means, for people
  std::string_view help;
  Secrecy secrecy = Secrecy::open;
  // Writes the parsed value; otherwise says what would have been right: "must be …".
  base::Result<bool, std::string> (*apply)(Config& config, std::string_view text) = nullptr;

  std::string environment_name() const;  // "POSTRIDER_LEASE_SECONDS"
  std::string flag_name() const;         // "--lease-seconds"
  bool is_secret() const { return secrecy != Secrecy::open; }
};

std::span<const Setting> settings();
const Setting* find_setting(std::string_view key);

}  // namespace postrider::config
