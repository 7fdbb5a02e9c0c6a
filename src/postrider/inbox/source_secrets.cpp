#include "postrider/inbox/source_secrets.hpp"

#include <algorithm>
#include <utility>

#include "postrider/base/encoding.hpp"
#include "postrider/crypto/random.hpp"
#include "postrider/crypto/signing_key.hpp"
#include "postrider/inbox/source_rows.hpp"
#include "postrider/registry/audit.hpp"
#include "postrider/registry/control_log.hpp"

namespace postrider::inbox {

namespace {

using registry::RejectionKind;
using runtime::Task;

constexpr size_t kMadeSecretBytes = 32;

// As rotate_master.sql builds it.
std::string context_of(const SourceId& source, model::SecretId secret) {
  return "source_secret/" + source + "/" + secret.uuid.text();
}

struct OpenedSecret {
  SourceSecret secret;
  std::optional<std::string> text;
};

using SecretRows = pg::RowsOf<sql::load_source_secrets>;

std::vector<OpenedSecret> read_secrets(const SecretRows& rows, const crypto::MasterKeys& keys,
                                       const SourceId& source) {
  std::vector<OpenedSecret> secrets;
  for (const auto& row : rows) {
    OpenedSecret opened;
    opened.secret.id.uuid = row.id;
    opened.secret.created_at = row.created_at;
    opened.secret.expires_at = row.expires_at;
    if (auto text = keys.open(crypto::Purpose::stored_secret, row.sealed.view,
                              context_of(source, opened.secret.id))) {
      opened.secret.masked = crypto::masked_secret(*text);
      opened.text = std::move(*text);
    }
    secrets.push_back(std::move(opened));
  }
  return secrets;
}

base::Result<std::string, registry::Rejection> choose(const Source& source,
                                                      const std::vector<OpenedSecret>& active,
                                                      const NewSourceSecret& wanted) {
  const bool replaces_all = wanted.overlap && wanted.overlap->count() == 0;
  if (!replaces_all && active.size() >= source_secrets_max)
    return base::Failure{
        registry::Rejection{RejectionKind::too_many_secrets,
                            "The source already has " + std::to_string(active.size()) +
                                " active secrets, and the limit is " + std::to_string(source_secrets_max) +
                                ". Delete one that is in its overlap, or rotate with overlap_seconds 0."}};
  for (const auto& other : active)
    if (other.text && other.text == wanted.secret)
      return base::Failure{registry::Rejection{RejectionKind::secret_in_use}};
  return choose_source_secret(source.provider, source.settings.signature, wanted.secret);
}

registry::AuditEntry added(const SourceId& source, model::SecretId id, const NewSourceSecret& wanted) {
  registry::Snapshot after;
  after.add("secret_id", id.public_id()).add("secret", registry::masked_text);
  if (wanted.overlap) after.add("overlap_seconds", wanted.overlap->count());
  after.add("is_given", wanted.secret.has_value());
  return {.action = wanted.overlap ? "source_secret.rotate" : "source_secret.add",
          .object = source,
          .after = std::move(after)};
}

registry::AuditEntry removed(const SourceId& source, model::SecretId id) {
  registry::Snapshot before;
  before.add("secret_id", id.public_id()).add("secret", registry::masked_text);
  return {.action = "source_secret.delete", .object = source, .before = std::move(before)};
}

}  // namespace

std::string seal_source_secret(const crypto::MasterKeys& keys, const SourceId& source, model::SecretId id,
                               std::string_view secret) {
  return keys.seal(crypto::Purpose::stored_secret, secret, context_of(source, id));
}

base::Result<std::string, registry::Rejection> choose_source_secret(
    Provider provider, const HmacScheme& scheme, const std::optional<std::string>& wanted) {
  if (wanted) {
    const auto key = key_of_secret(provider, scheme, *wanted);
    if (!key) return base::Failure{registry::Rejection{RejectionKind::secret_invalid, key.error()}};
    return *wanted;
  }
  if (!traits(provider).makes_secret)
    return base::Failure{registry::Rejection{
        RejectionKind::secret_invalid,
        "is required: " + std::string(label(provider)) + " issues the secret; copy it from there"}};
  if (provider == Provider::standard || provider == Provider::svix)
    return crypto::generate_secret(crypto::SignatureScheme::standard);
  const std::string bytes = crypto::random_bytes(kMadeSecretBytes);
  const bool is_base64 = provider == Provider::hmac && scheme.key == KeyForm::base64;
  return is_base64 ? base::base64_encode(bytes) : base::hex_encode(bytes);
}

void set_active_secrets(pg::Batch& batch, const registry::Context& context, const registry::Caller& caller,
                        const ConfiguredSource& wanted, const pg::RowsOf<sql::load_source_secrets>& active) {
  std::vector<std::string> missing = wanted.secrets;
  for (const OpenedSecret& each : read_secrets(active, context.keys, wanted.id)) {
    const auto found = each.text && !each.secret.expires_at
                           ? std::find(missing.begin(), missing.end(), *each.text)
                           : missing.end();
    if (found != missing.end()) {
      missing.erase(found);
      continue;
    }
    batch.add(sql::delete_source_secret{.id = each.secret.id.uuid, .source = wanted.id});
    registry::add_audit(batch, caller, removed(wanted.id, each.secret.id));
  }
  for (const std::string& text : missing) {
    const model::SecretId id{context.ids.next()};
    const std::string sealed = seal_source_secret(context.keys, wanted.id, id, text);
    batch.add(sql::insert_source_secret{.id = id.uuid, .source = wanted.id, .sealed = pg::Bytes{sealed}});
    registry::add_audit(batch, caller, added(wanted.id, id, {.secret = text, .overlap = {}}));
  }
}

Task<base::Result<std::vector<SourceSecret>, registry::Rejection>> list_source_secrets(
    pg::Link& link, const registry::Context& context, SourceId source) {
  const std::vector<SourceId> ids{source};
  const auto [sources, rows] =
      co_await link.run(sql::load_sources{.ids = ids}, sql::load_source_secrets{.source = source});
  if (sources.empty()) co_return base::Failure{registry::Rejection{RejectionKind::unknown_source}};
  std::vector<SourceSecret> secrets;
  for (auto& opened : read_secrets(rows, context.keys, source)) secrets.push_back(std::move(opened.secret));
  co_return secrets;
}

Task<base::Result<AddedSourceSecret, registry::Rejection>> add_source_secret(pg::Link& link,
                                                                             const registry::Context& context,
                                                                             const registry::Caller& caller,
                                                                             SourceId source,
                                                                             NewSourceSecret wanted) {
  pg::Transaction transaction = co_await link.begin();
  const std::vector<SourceId> ids{source};
  const auto [locked, source_rows, secret_rows] =
      co_await transaction.run(sql::lock_source{.id = source}, sql::load_sources{.ids = ids},
                               sql::load_source_secrets{.source = source});
  const auto sources = read_sources(source_rows);
  if (sources.empty()) co_return base::Failure{registry::Rejection{RejectionKind::unknown_source}};
  const auto text = choose(sources[0], read_secrets(secret_rows, context.keys, source), wanted);
  if (!text) co_return base::Failure{text.error()};

  const model::SecretId id{context.ids.next()};
  const std::string sealed = seal_source_secret(context.keys, source, id, *text);
  pg::Batch batch;
  if (wanted.overlap)
    batch.add(sql::start_source_overlap{.overlap_seconds = static_cast<double>(wanted.overlap->count()),
                                        .source = source});
  batch.add(sql::delete_expired_source_secrets{.source = source});
  batch.add(sql::insert_source_secret{.id = id.uuid, .source = source, .sealed = pg::Bytes{sealed}});
  const auto loaded = batch.add(sql::load_source_secrets{.source = source});
  registry::add_audit(batch, caller, added(source, id, wanted));
  registry::add_note(batch, registry::ChangeKind::source);
  pg::Results results = co_await transaction.run(std::move(batch));
  co_await transaction.commit();
  const auto active = results.take(loaded);
  auto newest = std::move(read_secrets(active, context.keys, source).front());
  AddedSourceSecret secret{std::move(newest.secret), *text};
  co_return secret;
}

Task<std::optional<registry::Rejection>> delete_source_secret(pg::Link& link, const registry::Caller& caller,
                                                              SourceId source, model::SecretId secret) {
  pg::Transaction transaction = co_await link.begin();
  const auto [locked, active] =
      co_await transaction.run(sql::lock_source{.id = source}, sql::load_source_secrets{.source = source});
  if (locked.empty()) co_return registry::Rejection{RejectionKind::unknown_source};
  bool exists = false;
  for (const auto& row : active) exists |= row.id == secret.uuid;
  if (!exists) co_return registry::Rejection{RejectionKind::unknown_secret};
  if (active.size() == 1) co_return registry::Rejection{RejectionKind::is_last_secret};
  pg::Batch batch;
  batch.add(sql::delete_source_secret{.id = secret.uuid, .source = source});
  registry::add_audit(batch, caller, removed(source, secret));
  registry::add_note(batch, registry::ChangeKind::source);
  co_await transaction.run(std::move(batch));
  co_await transaction.commit();
  co_return std::nullopt;
}

Task<std::vector<ActiveKey>> load_active_keys(pg::Link& link, const crypto::MasterKeys& keys,
                                              const Source& source) {
  const auto rows = co_await link.run(sql::load_source_secrets{.source = source.id});
  std::vector<ActiveKey> active;
  for (const auto& opened : read_secrets(rows, keys, source.id)) {
    if (!opened.text) continue;
    auto key = key_of_secret(source.provider, source.settings.signature, *opened.text);
    if (key) active.push_back({std::move(*key), opened.secret.expires_at});
  }
  co_return active;
}

}  // namespace postrider::inbox
