#include <fmt/format.h>

#include "postrider/config/load.hpp"
#include "postrider/config/run_command.hpp"
#include "postrider/config/values.hpp"

namespace postrider::config {

std::optional<std::string> resolve_master_key(const Config& config, std::chrono::milliseconds timeout) {
  if (!config.master_key.empty()) return config.master_key;
  if (config.master_key_command.empty()) return std::nullopt;
  const auto printed = run_command({"/bin/sh", "-c", config.master_key_command}, timeout);
  if (!printed) throw ConfigError(fmt::format("The command of master_key_command {}.", printed.error()));
  const std::string_view key = trimmed(*printed);
  if (key.empty()) throw ConfigError("The command of master_key_command printed nothing.");
  return std::string(key);
}

}  // namespace postrider::config
