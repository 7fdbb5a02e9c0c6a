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
constexpr std::string_view kEmbeddedPrefix = "prs_";
constexpr std::string_view kConsole = "console";

SessionKind parse_kind(std::string_view text) {
  return text == kConsole ? SessionKind::console : SessionKind::portal;
}

bool is_token_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

// The person who is signed in, for the audit log: the link and its label, or the key.
struct Person {
  SessionKind kind;
  model::KeyId key;
  std::optional<base::Uuid> portal_link;
  std::optional<std::string> label;
  bool is_preview;
};

void set_person(Caller& caller, const Person& person) {
  const bool is_portal = person.kind == SessionKind::portal;
  caller.kind = is_portal ? ActorKind::portal : ActorKind::console;
  caller.id = person.portal_link ? model::LinkId{*person.portal_link}.public_id() : person.key.public_id();
  caller.name = person.label;
  if (is_portal) caller.actor = person.is_preview ? model::Actor::operator_ : model::Actor::customer;
}

// The rights of the key.
NewSession session_of(model::KeyId key, registry::Role role, std::optional<model::TenantId> tenant) {
  NewSession wanted;
  wanted.key = key;
  if (role != registry::Role::customer) return wanted;
  wanted.kind = SessionKind::portal;
  wanted.tenant = std::move(tenant);
  wanted.limits = portal_limits;
  return wanted;
}

}  // namespace

std::string generate_token() {
  return base::base64url_encode(crypto::random_bytes(kTokenBytes));
}

bool is_token(std::string_view text) {
  return text.size() == kTokenLength && std::all_of(text.begin(), text.end(), is_token_character);
}

bool is_embedded_token(std::string_view text) {
  return text.starts_with(kEmbeddedPrefix) && is_token(text.substr(kEmbeddedPrefix.size()));
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
  registry::Session session;
  session.id.uuid = row.session_id;
  session.kind = parse_kind(row.kind);
  session.expires_at = row.expires_at;
  session.is_preview = row.is_preview;
  if (row.portal_link_id) session.link = model::LinkId{*row.portal_link_id};
  session.label = row.label;
  principal.session = std::move(session);
  if (row.expires_in_us) found.expires_in = std::chrono::microseconds(*row.expires_in_us);
  co_return found;
}

Task<OpenedSession> insert_session(pg::Transaction& transaction, Caller caller, NewSession wanted) {
  OpenedSession opened;
  opened.kind = wanted.kind;
  opened.token = (wanted.is_embedded ? std::string(kEmbeddedPrefix) : "") + generate_token();
  const TokenHash hash = hash_token(opened.token);
  const model::SessionId id{registry::make_key_id().uuid};
  std::optional<base::Uuid> link;
  if (wanted.link) link = wanted.link->uuid;
  const auto idle = static_cast<int32_t>(wanted.limits.idle.count());
  const auto total = static_cast<int32_t>(wanted.limits.total.count());
  const auto [cleaned, rows] = co_await transaction.run(
      sql::delete_ended_sessions{}, sql::insert_session{.hash = pg::Bytes(hash.view()),
                                                        .id = id.uuid,
                                                        .kind = label(wanted.kind),
                                                        .link = link,
                                                        .tenant = wanted.tenant,
                                                        .is_read_only = wanted.is_read_only,
                                                        .payloads = wanted.sees_payloads,
                                                        .is_preview = wanted.is_preview,
                                                        .idle_seconds = idle,
                                                        .seconds = total,
                                                        .address = caller.address,
                                                        .key = wanted.key.uuid});
  opened.expires_at = rows.front().expires_at;
  if (wanted.kind == SessionKind::console) link.reset();  // there the key is what the audit log names
  set_person(caller, {wanted.kind, wanted.key, link, wanted.label, wanted.is_preview});
  pg::Batch audit;
  registry::add_audit(audit, caller,
                      {.action = "session.create", .tenant = wanted.tenant, .object = id.public_id()});
  co_await transaction.run(std::move(audit));
  co_return opened;
}

Task<OpenedSession> open_session(pg::Link& link, Caller caller, registry::Principal key) {
  pg::Transaction transaction = co_await link.begin();
  NewSession wanted = session_of(key.key, key.role, key.tenant);
  OpenedSession opened = co_await insert_session(transaction, std::move(caller), std::move(wanted));
  co_await transaction.commit();
  co_return opened;
}

Task<bool> end_session(pg::Link& link, Caller caller, TokenHash hash) {
  pg::Transaction transaction = co_await link.begin();
  const auto rows = co_await transaction.run(sql::delete_session{.hash = pg::Bytes(hash.view())});
  if (rows.empty()) co_return false;
  const auto row = rows.front();
  std::optional<std::string> label;
  if (row.label) label = *row.label;
  set_person(caller, {parse_kind(row.kind), {row.key_id}, row.portal_link_id, label, row.is_preview});
  std::optional<model::TenantId> tenant;
  if (row.tenant_id) tenant = *row.tenant_id;
  pg::Batch last;
  registry::add_audit(last, caller,
                      {.action = "session.delete",
                       .tenant = std::move(tenant),
                       .object = model::SessionId{row.id}.public_id()});
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
  const auto [cleaned, rows] = co_await transaction.run(
      sql::delete_ended_links{}, sql::insert_console_link{.id = id.uuid,
                                                          .hash = pg::Bytes(hash.view()),
                                                          .key = key.uuid,
                                                          .session_seconds = total,
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
  const auto row = rows.front();
  std::optional<model::TenantId> tenant;
  if (row.key_tenant_id) tenant = *row.key_tenant_id;
  NewSession wanted =
      session_of({row.key_id}, registry::known(registry::parse_role(row.key_role)), std::move(tenant));
  wanted.link = model::LinkId{row.id};
  OpenedSession opened = co_await insert_session(transaction, std::move(caller), std::move(wanted));
  co_await transaction.commit();
  co_return opened;
}

}  // namespace postrider::web
