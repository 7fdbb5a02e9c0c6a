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
  pg::Params params(std::string_view("buckets"));
  const pg::Rows rows = co_await link.run_one(sql::read_setting, std::move(params));
  if (rows.empty()) throw std::runtime_error("The database has no setting `buckets`: is it migrated?");
  co_return std::stoi(rows.get<std::string>(0, 0));
}

Task<void> verify_master_key(pg::Link& link, const crypto::MasterKeys& keys) {
  const std::string fresh = base::base64_encode(keys.make_check_value());
  pg::Batch batch;
  batch.with(sql::insert_setting, kMasterKeyCheck, fresh).with(sql::read_setting, kMasterKeyCheck);
  const std::vector<pg::Rows> answers = co_await link.run(std::move(batch));
  const auto stored = answers[1].get<std::string>(0, 0);
  const auto check_value = base::base64_decode(stored);
  if (!check_value || !keys.accepts(*check_value))
    throw std::runtime_error(
        "The master key is not the one that this database's secrets are encrypted with. Start with the right "
        "POSTRIDER_MASTER_KEY; to change it, put the new key first and keep the old one behind it.");
  if (keys.is_outdated(*check_value)) {
    pg::Params params(kMasterKeyCheck, stored, fresh);
    co_await link.run_one(sql::replace_setting, std::move(params));
  }
}

}  // namespace postrider::registry
