#include "postrider/registry/keys.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "postrider/base/encoding.hpp"
#include "postrider/crypto/random.hpp"
#include "postrider/registry/api_keys.hpp"
#include "postrider/registry/audit.hpp"
#include "postrider/registry/columns.hpp"
#include "postrider/registry/keys.sql.hpp"

namespace postrider::registry {

namespace {

using runtime::Task;

constexpr std::array<std::string_view, 4> kRoles{"admin", "operator", "publisher", "reader"};
constexpr std::string_view kKeyPrefix = "pr_";
constexpr std::string_view kConfigured = "configured as ADMIN_KEY";
constexpr std::string_view kMade = "made at the first start";

AuditEntry entry_of(std::string_view action, const pg::Rows& rows, size_t row) {
  return {.action = action,
          .object = model::KeyId{rows.get<base::Uuid>(row, 0)}.outside(),
          .reason = rows.get<std::string>(row, 1)};
}

}  // namespace

std::string_view label(Role role) {
  return kRoles[static_cast<size_t>(role)];
}

std::optional<Role> parse_role(std::string_view text) {
  const auto found = std::find(kRoles.begin(), kRoles.end(), text);
  if (found == kRoles.end()) return std::nullopt;
  return static_cast<Role>(found - kRoles.begin());
}

KeyHash hash_key(std::string_view key) {
  return crypto::sha256(key);
}

model::KeyId make_key_id() {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(base::wall_now().time_since_epoch());
  base::Uuid id;
  crypto::fill_random(id.bytes);
  for (size_t i = 0; i < 6; ++i) id.bytes[i] = static_cast<uint8_t>(ms.count() >> (40 - 8 * i));
  id.bytes[6] = static_cast<uint8_t>((id.bytes[6] & 0x0F) | 0x70);
  id.bytes[8] = static_cast<uint8_t>((id.bytes[8] & 0x3F) | 0x80);
  return model::KeyId{id};
}

std::string generate_key() {
  return std::string(kKeyPrefix) + base::hex_encode(crypto::random_bytes(32));
}

Task<std::optional<Principal>> find_key(pg::Link& link, KeyHash hash) {
  // Asked only when a node does not know the key, so this is also the moment to note that it is in use.
  pg::Batch batch;
  batch.with(sql::note_use, pg::Bytes{hash.view()}).with(sql::find_key, pg::Bytes{hash.view()});
  const std::vector<pg::Rows> answers = co_await link.run(std::move(batch));
  const pg::Rows& rows = answers[1];
  if (rows.empty()) co_return std::nullopt;
  if (!crypto::constant_time_equal(rows.get<pg::Bytes>(0, 0).view, hash.view())) co_return std::nullopt;
  Principal principal;
  principal.key.uuid = rows.get<base::Uuid>(0, 1);
  principal.role = known(parse_role(rows.get<std::string_view>(0, 2)));
  principal.tenant = rows.get<std::optional<std::string>>(0, 3);
  principal.sees_payloads = rows.get<bool>(0, 4);
  principal.rate_per_second = rows.get<std::optional<double>>(0, 5);
  co_return principal;
}

Task<std::optional<std::string>> ensure_admin_key(pg::Link& link, std::string configured) {
  const bool is_configured = !configured.empty();
  if (is_configured && configured.size() < admin_key_length_min)
    throw std::runtime_error("POSTRIDER_ADMIN_KEY must have at least " +
                             std::to_string(admin_key_length_min) + " characters.");
  pg::Transaction transaction = co_await link.begin();
  pg::Batch lock;
  lock.with(sql::lock_keys).with(sql::has_admin_key);
  const std::vector<pg::Rows> found = co_await transaction.run(std::move(lock));
  if (!is_configured && found[1].get<bool>(0, 0)) co_return std::nullopt;

  const std::string key = is_configured ? configured : generate_key();
  const KeyHash hash = hash_key(key);
  pg::Batch install;
  install.with(sql::insert_admin_key, make_key_id().uuid, pg::Bytes{hash.view()},
               is_configured ? kConfigured : kMade);
  if (is_configured) install.with(sql::revoke_other_configured_keys, pg::Bytes{hash.view()}, kConfigured);
  const std::vector<pg::Rows> installed = co_await transaction.run(std::move(install));
  const bool is_revoking = is_configured && !installed[1].empty();
  if (installed[0].empty() && !is_revoking) co_return std::nullopt;
  pg::Batch note;
  if (!installed[0].empty()) add_audit(note, Caller::system(), entry_of("key.create", installed[0], 0));
  if (is_revoking)
    for (size_t row = 0; row < installed[1].size(); ++row)
      add_audit(note, Caller::system(), entry_of("key.revoke", installed[1], row));
  note.with(sql::note_keys);
  const std::vector<pg::Rows> noted = co_await transaction.run(std::move(note));
  co_await transaction.commit();
  if (is_configured) co_return std::nullopt;
  co_return key;
}

}  // namespace postrider::registry
