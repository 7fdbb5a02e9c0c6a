#include "postrider/registry/startup.hpp"

#include <stdexcept>
#include <string>
#include <utility>

#include "postrider/base/encoding.hpp"
#include "postrider/registry/startup.sql.hpp"

namespace postrider::registry {

namespace {

using runtime::Task;

constexpr std::string_view kMasterKeyCheck = "master_key_check";

}  // namespace

Task<int> read_buckets(pg::Link& link) {
  const auto rows = co_await link.run(sql::read_setting{.name = std::string_view("buckets")});
  if (rows.empty()) throw std::runtime_error("The database has no setting `buckets`: is it migrated?");
  co_return std::stoi(std::string(rows.front().value));
}

Task<void> verify_master_key(pg::Link& link, const crypto::MasterKeys& keys) {
  const std::string fresh = base::base64_encode(keys.make_check_value());
  const auto [inserted, setting_rows] =
      co_await link.run(sql::insert_setting{.name = kMasterKeyCheck, .value = fresh},
                        sql::read_setting{.name = kMasterKeyCheck});
  const auto stored = std::string(setting_rows.front().value);
  const auto check_value = base::base64_decode(stored);
  if (!check_value || !keys.accepts(*check_value))
    throw std::runtime_error(
        "This database's secrets are encrypted with another master key. Start with the right "
        "POSTRIDER_MASTER_KEY; to change it, put the new key first and keep the old one after it.");
  if (keys.is_outdated(*check_value)) {
    co_await link.run(sql::replace_setting{.value = fresh, .name = kMasterKeyCheck, .old_value = stored});
  }
}

}  // namespace postrider::registry
