#include "postrider/web/sessions.hpp"

#include <algorithm>
#include <utility>

#include "postrider/base/encoding.hpp"
#include "postrider/crypto/random.hpp"
#include "postrider/registry/api_keys.hpp"
#include "postrider/registry/audit.hpp"
#include "postrider/registry/columns.hpp"
#include "postrider/registry/control_log.hpp"
#include "postrider/web/sessions.sql.hpp"

namespace postrider::web {

namespace {

using registry::ActorKind;
using registry::Caller;
using registry::FoundKey;
using runtime::Task;

constexpr size_t kTokenBytes = 32;
constexpr size_t kTokenLength = 43;  // base64url without padding
constexpr std::string_view kConsole = "console";

SessionKind parse_kind(std::string_view text) {
  return text == kConsole ? SessionKind::console : SessionKind::portal;
}

bool is_token_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

struct NewSession {
  model::KeyId key;
  std::optional<base::Uuid> link{};
};

// In the transaction, without its commit.
Task<OpenedSession> insert(pg::Transaction& transaction, Caller caller, NewSession wanted) {
  OpenedSession opened;
  opened.token = generate_token();
  const TokenHash hash = hash_token(opened.token);
  const model::SessionId id{registry::make_key_id().uuid};
  const auto idle = static_cast<int32_t>(console_limits.idle.count());
  const auto total = static_cast<int32_t>(console_limits.total.count());
  const auto [cleaned, rows] = co_await transaction.run(sql::delete_ended_sessions{},
                                                        sql::insert_session{.hash = pg::Bytes(hash.view()),
                                                                            .id = id.uuid,
                                                                            .kind = kConsole,
                                                                            .link = wanted.link,
                                                                            .tenant = {},
                                                                            .is_read_only = false,
                                                                            .idle_seconds = idle,
                                                                            .seconds = total,
                                                                            .address = caller.address,
                                                                            .key = wanted.key.uuid});
  opened.expires_at = rows.front().expires_at;
  caller.kind = ActorKind::console;
  caller.id = wanted.key.public_id();
  pg::Batch audit;
  registry::add_audit(audit, caller, {.action = "session.create", .object = id.public_id()});
  co_await transaction.run(std::move(audit));
  co_return opened;
}

}  // namespace

std::string generate_token() {
  return base::base64url_encode(crypto::random_bytes(kTokenBytes));
}

bool is_token(std::string_view text) {
  return text.size() == kTokenLength && std::all_of(text.begin(), text.end(), is_token_character);
}

TokenHash hash_token(std::string_view token) {
  return crypto::sha256(token);
}

std::string csrf_token(std::string_view token) {
  return base::base64url_encode(crypto::hmac_sha256(token, {"postrider csrf"}).view());
}

Task<std::optional<FoundKey>> find_session(pg::Link& link, TokenHash hash) {
  const auto [noted, rows] = co_await link.run(sql::note_session_use{.hash = pg::Bytes(hash.view())},
                                               sql::find_session{.hash = pg::Bytes(hash.view())});
  if (rows.empty()) co_return std::nullopt;
  const auto row = rows.front();
  if (!crypto::constant_time_equal(row.hash.view, hash.view())) co_return std::nullopt;
  FoundKey found;
  registry::Principal& principal = found.principal;
  principal.key.uuid = row.id;
  principal.kind = row.is_token ? registry::KeyKind::token : registry::KeyKind::key;
  principal.role = registry::known(registry::parse_role(row.role));
  principal.is_read_only = row.is_read_only;
  principal.tenant = row.tenant_id;
  principal.sees_payloads = row.payloads;
  principal.rate_per_second = row.rate_per_second;
  principal.session = registry::Session{{row.session_id}, parse_kind(row.kind), row.expires_at};
  if (row.expires_in_us) found.expires_in = std::chrono::microseconds(*row.expires_in_us);
  co_return found;
}

Task<OpenedSession> open_console(pg::Link& link, Caller caller, model::KeyId key) {
  pg::Transaction transaction = co_await link.begin();
  NewSession wanted{key};
  OpenedSession opened = co_await insert(transaction, std::move(caller), std::move(wanted));
  co_await transaction.commit();
  co_return opened;
}

Task<bool> end_session(pg::Link& link, Caller caller, TokenHash hash) {
  pg::Transaction transaction = co_await link.begin();
  const auto rows = co_await transaction.run(sql::delete_session{.hash = pg::Bytes(hash.view())});
  if (rows.empty()) co_return false;
  caller.id = model::KeyId{rows.front().key_id}.public_id();
  pg::Batch last;
  registry::add_audit(last, caller,
                      {.action = "session.delete", .object = model::SessionId{rows.front().id}.public_id()});
  registry::add_note(last, registry::ChangeKind::key);  // every node forgets it
  co_await transaction.run(std::move(last));
  co_await transaction.commit();
  co_return true;
}

Task<CreatedLink> create_console_link(pg::Link& link, Caller caller, model::KeyId key) {
  CreatedLink created;
  created.token = generate_token();
  const TokenHash hash = hash_token(created.token);
  const model::LinkId id{registry::make_key_id().uuid};
  created.id = id.public_id();
  const auto total = static_cast<int32_t>(console_limits.total.count());
  const auto lifetime = static_cast<int32_t>(console_link_lifetime.count());
  pg::Transaction transaction = co_await link.begin();
  const auto [cleaned, rows] =
      co_await transaction.run(sql::delete_ended_links{}, sql::insert_link{.id = id.uuid,
                                                                           .hash = pg::Bytes(hash.view()),
                                                                           .kind = kConsole,
                                                                           .key = key.uuid,
                                                                           .tenant = {},
                                                                           .is_read_only = false,
                                                                           .session_seconds = total,
                                                                           .label = {},
                                                                           .seconds = lifetime});
  created.expires_at = rows.front().expires_at;
  pg::Batch audit;
  registry::add_audit(audit, caller, {.action = "console_link.create", .object = created.id});
  co_await transaction.run(std::move(audit));
  co_await transaction.commit();
  co_return created;
}

Task<std::optional<OpenedSession>> follow_console_link(pg::Link& link, Caller caller, std::string token) {
  if (!is_token(token)) co_return std::nullopt;
  const TokenHash hash = hash_token(token);
  pg::Transaction transaction = co_await link.begin();
  const auto rows = co_await transaction.run(sql::use_link{.hash = pg::Bytes(hash.view()), .kind = kConsole});
  if (rows.empty()) co_return std::nullopt;
  NewSession wanted{{rows.front().key_id}, rows.front().id};
  OpenedSession opened = co_await insert(transaction, std::move(caller), std::move(wanted));
  co_await transaction.commit();
  co_return opened;
}

}  // namespace postrider::web
