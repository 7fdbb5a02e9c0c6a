#include "postrider/pg/server_upgrade.hpp"

#include <libpq-fe.h>

#include <utility>

namespace postrider::pg {

std::string installed_version(const ServerPrograms& programs) {
  const std::string line = version_line_of(programs);
  constexpr std::string_view before = "postgres (PostgreSQL) ";
  return line.starts_with(before) ? line.substr(before.size()) : std::string();
}

std::string running_version(const std::string& url) {
  PGconn* connection = ::PQconnectdb(url.c_str());
  const char* version = ::PQparameterStatus(connection, "server_version");
  std::string text = version == nullptr ? "" : version;
  ::PQfinish(connection);
  return text;
}

std::optional<ServerUpgrade> compare_versions(std::string running, std::string installed) {
  if (running.empty() || installed.empty() || running == installed) return std::nullopt;
  return ServerUpgrade{std::move(running), std::move(installed)};
}

bool UpgradeWatch::should_restart(const std::optional<ServerUpgrade>& upgrade, Time now) {
  if (!upgrade || upgrade->installed == restarted_for_) return false;
  if (upgrade->installed != seen_) {
    seen_ = upgrade->installed;
    seen_at_ = now;
  }
  if (now - seen_at_ < settle_) return false;
  restarted_for_ = upgrade->installed;
  return true;
}

}  // namespace postrider::pg
