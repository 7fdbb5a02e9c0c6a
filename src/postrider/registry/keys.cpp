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

constexpr std::array<std::string_view, 5> kRoles{"admin", "operator", "customer", "publisher", "reader"};
constexpr std::string_view kKeyPrefix = "pr_";
constexpr std::string_view kConfigured = "configured as ADMIN_KEY";
constexpr std::string_view kMade = "made at the first start";

AuditEntry entry_of(std::string_view action, const sql::DescribedKeyRow& row) {
  return {
      .action = action, .object = model::KeyId{row.id}.public_id(), .reason = std::string(row.description)};
}

}  // namespace

std::string_view label(Role role) {
  return kRoles[static_cast<size_t>(role)];
}

std::string_view label(SessionKind kind) {
  return kind == SessionKind::console ? "console" : "portal";
}

std::optional<Role> parse_role(std::string_view text) {
  const auto found = std::find(kRoles.begin(), kRoles.end(), text);
  if (found == kRoles.end()) return std::nullopt;
  return static_cast<Role>(found - kRoles.begin());
}

std::string_view label(KeyKind kind) {
  return kind == KeyKind::token ? "token" : "key";
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

Task<std::optional<FoundKey>> find_key(pg::Link& link, KeyHash hash) {
  // Asked only when a node does not know the key, so this is also the moment to note that it is in use.
  const auto [noted, key_rows] = co_await link.run(sql::note_use{.hash = pg::Bytes(hash.view())},
                                                   sql::find_key{.hash = pg::Bytes(hash.view())});
  if (key_rows.empty()) co_return std::nullopt;
  const auto row = key_rows.front();
  if (!crypto::constant_time_equal(row.hash.view, hash.view())) co_return std::nullopt;
  FoundKey found;
  Principal& principal = found.principal;
  principal.key.uuid = row.id;
  principal.kind = row.is_token ? KeyKind::token : KeyKind::key;
  principal.role = known(parse_role(row.role));
  principal.is_read_only = row.is_read_only;
  principal.tenant = row.tenant_id;
  principal.sees_payloads = row.payloads;
  principal.rate_per_second = row.rate_per_second;
  if (row.expires_in_us) found.expires_in = std::chrono::microseconds(*row.expires_in_us);
  co_return found;
}

Task<std::optional<std::string>> ensure_admin_key(pg::Link& link, std::string configured) {
  const bool is_configured = !configured.empty();
  if (is_configured && configured.size() < admin_key_length_min)
    throw std::runtime_error("POSTRIDER_ADMIN_KEY must have at least " +
                             std::to_string(admin_key_length_min) + " characters.");
  pg::Transaction transaction = co_await link.begin();
  const auto [locked, admin_rows] = co_await transaction.run(sql::lock_keys{}, sql::has_admin_key{});
  if (!is_configured && admin_rows.front().has_admin_key) co_return std::nullopt;

  const std::string key = is_configured ? configured : generate_key();
  const KeyHash hash = hash_key(key);
  const std::string_view description = is_configured ? kConfigured : kMade;
  const auto created = co_await transaction.run(sql::insert_admin_key{
      .id = make_key_id().uuid, .hash = pg::Bytes(hash.view()), .description = description});
  pg::RowsOf<sql::revoke_other_configured_keys> revoked;
  if (is_configured)
    revoked = co_await transaction.run(
        sql::revoke_other_configured_keys{.description = kConfigured, .kept_hash = pg::Bytes(hash.view())});
  if (created.empty() && revoked.empty()) co_return std::nullopt;
  pg::Batch note;
  for (const auto& row : created) add_audit(note, Caller::system(), entry_of("key.create", row));
  for (const auto& row : revoked) add_audit(note, Caller::system(), entry_of("key.revoke", row));
  note.add(sql::note_keys{});
  co_await transaction.run(std::move(note));
  co_await transaction.commit();
  if (is_configured) co_return std::nullopt;
  co_return key;
}

}  // namespace postrider::registry
