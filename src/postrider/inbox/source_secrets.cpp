#include "postrider/inbox/source_secrets.hpp"

#include <algorithm>
#include <utility>

#include "postrider/base/encoding.hpp"
#include "postrider/crypto/random.hpp"
#include "postrider/crypto/signing_key.hpp"
#include "postrider/inbox/source_rows.hpp"
#include "postrider/inbox/sources.sql.hpp"
#include "postrider/registry/audit.hpp"
#include "postrider/registry/control_log.hpp"

namespace postrider::inbox {

namespace {

using registry::Refusal;
using registry::RefusalKind;
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

std::vector<OpenedSecret> read_secrets(const pg::Rows& rows, const crypto::MasterKeys& keys,
                                       const SourceId& source) {
  std::vector<OpenedSecret> secrets;
  for (size_t row = 0; row < rows.size(); ++row) {
    OpenedSecret opened;
    opened.secret.id.uuid = rows.get<base::Uuid>(row, 0);
    opened.secret.created_at = rows.get<base::Timestamp>(row, 2);
    opened.secret.expires_at = rows.get<std::optional<base::Timestamp>>(row, 3);
    const std::string_view sealed = rows.get<pg::Bytes>(row, 1).view;
    if (auto text = keys.open(crypto::Purpose::stored_secret, sealed, context_of(source, opened.secret.id))) {
      opened.secret.masked = crypto::masked_secret(*text);
      opened.text = std::move(*text);
    }
    secrets.push_back(std::move(opened));
  }
  return secrets;
}

// The source, locked, and its active secrets.
struct Locked {
  std::vector<Source> sources;  // one, or none when it does not exist
  std::vector<OpenedSecret> active;
};

pg::Batch lock(const SourceId& source) {
  const std::vector<SourceId> ids{source};
  pg::Batch batch;
  batch.with(sql::lock_source, source).with(sql::load_sources, ids).with(sql::load_source_secrets, source);
  return batch;
}

base::Result<std::string, Refusal> choose(const Source& source, const std::vector<OpenedSecret>& active,
                                          const NewSourceSecret& wanted) {
  const bool replaces_all = wanted.overlap && wanted.overlap->count() == 0;
  if (!replaces_all && active.size() >= source_secrets_max)
    return base::Failure{Refusal{RefusalKind::too_many_secrets}};
  for (const auto& other : active)
    if (other.text && other.text == wanted.secret) return base::Failure{Refusal{RefusalKind::secret_in_use}};
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

base::Result<std::string, Refusal> choose_source_secret(Provider provider, const HmacScheme& scheme,
                                                        const std::optional<std::string>& wanted) {
  if (wanted) {
    const auto key = key_of_secret(provider, scheme, *wanted);
    if (!key) return base::Failure{Refusal{RefusalKind::secret_unfit, key.error()}};
    return *wanted;
  }
  if (!traits(provider).makes_secret)
    return base::Failure{Refusal{RefusalKind::secret_unfit, "is required: " + std::string(label(provider)) +
                                                                " issues the secret; copy it from there"}};
  if (provider == Provider::standard || provider == Provider::svix)
    return crypto::generate_secret(crypto::SignatureScheme::standard);
  const std::string bytes = crypto::random_bytes(kMadeSecretBytes);
  const bool is_base64 = provider == Provider::hmac && scheme.key == KeyForm::base64;
  return is_base64 ? base::base64_encode(bytes) : base::hex_encode(bytes);
}

void set_active_secrets(pg::Batch& batch, const registry::Context& context, const registry::Caller& caller,
                        const ConfiguredSource& wanted, const pg::Rows& active) {
  std::vector<std::string> missing = wanted.secrets;
  for (const OpenedSecret& each : read_secrets(active, context.keys, wanted.id)) {
    const auto found = each.text && !each.secret.expires_at
                           ? std::find(missing.begin(), missing.end(), *each.text)
                           : missing.end();
    if (found != missing.end()) {
      missing.erase(found);
      continue;
    }
    batch.with(sql::delete_source_secret, wanted.id, each.secret.id.uuid);
    registry::add_audit(batch, caller, removed(wanted.id, each.secret.id));
  }
  for (const std::string& text : missing) {
    const model::SecretId id{context.ids.next()};
    const std::string sealed = seal_source_secret(context.keys, wanted.id, id, text);
    batch.with(sql::insert_source_secret, id.uuid, wanted.id, pg::Bytes{sealed});
    registry::add_audit(batch, caller, added(wanted.id, id, {.secret = text, .overlap = {}}));
  }
}

Task<base::Result<std::vector<SourceSecret>, Refusal>> list_source_secrets(pg::Link& link,
                                                                           const registry::Context& context,
                                                                           SourceId source) {
  const std::vector<SourceId> ids{source};
  pg::Batch batch;
  batch.with(sql::load_sources, ids).with(sql::load_source_secrets, source);
  const std::vector<pg::Rows> found = co_await link.run(std::move(batch));
  if (found[0].empty()) co_return base::Failure{Refusal{RefusalKind::unknown_source}};
  std::vector<SourceSecret> secrets;
  for (auto& opened : read_secrets(found[1], context.keys, source))
    secrets.push_back(std::move(opened.secret));
  co_return secrets;
}

Task<base::Result<AddedSourceSecret, Refusal>> add_source_secret(pg::Link& link,
                                                                 const registry::Context& context,
                                                                 const registry::Caller& caller,
                                                                 SourceId source, NewSourceSecret wanted) {
  pg::Transaction transaction = co_await link.begin();
  pg::Batch locking = lock(source);
  const std::vector<pg::Rows> found = co_await transaction.run(std::move(locking));
  const auto sources = read_sources(found[1]);
  if (sources.empty()) co_return base::Failure{Refusal{RefusalKind::unknown_source}};
  const auto text = choose(sources[0], read_secrets(found[2], context.keys, source), wanted);
  if (!text) co_return base::Failure{text.error()};

  const model::SecretId id{context.ids.next()};
  const std::string sealed = seal_source_secret(context.keys, source, id, *text);
  pg::Batch batch;
  if (wanted.overlap)
    batch.with(sql::start_source_overlap, source, static_cast<double>(wanted.overlap->count()));
  batch.with(sql::delete_expired_source_secrets, source)
      .with(sql::insert_source_secret, id.uuid, source, pg::Bytes{sealed});
  const size_t loaded = batch.size();
  batch.with(sql::load_source_secrets, source);
  registry::add_audit(batch, caller, added(source, id, wanted));
  registry::add_note(batch, registry::ChangeKind::source);
  const std::vector<pg::Rows> answers = co_await transaction.run(std::move(batch));
  co_await transaction.commit();
  auto newest = std::move(read_secrets(answers[loaded], context.keys, source).front());
  AddedSourceSecret secret{std::move(newest.secret), *text};
  co_return secret;
}

Task<std::optional<Refusal>> delete_source_secret(pg::Link& link, const registry::Caller& caller,
                                                  SourceId source, model::SecretId secret) {
  pg::Transaction transaction = co_await link.begin();
  pg::Batch locking = lock(source);
  const std::vector<pg::Rows> found = co_await transaction.run(std::move(locking));
  if (found[0].empty()) co_return Refusal{RefusalKind::unknown_source};
  bool is_there = false;
  for (size_t row = 0; row < found[2].size(); ++row)
    is_there |= found[2].get<base::Uuid>(row, 0) == secret.uuid;
  if (!is_there) co_return Refusal{RefusalKind::unknown_secret};
  if (found[2].size() == 1) co_return Refusal{RefusalKind::is_last_secret};
  pg::Batch batch;
  batch.with(sql::delete_source_secret, source, secret.uuid);
  registry::add_audit(batch, caller, removed(source, secret));
  registry::add_note(batch, registry::ChangeKind::source);
  const std::vector<pg::Rows> done = co_await transaction.run(std::move(batch));
  co_await transaction.commit();
  co_return std::nullopt;
}

Task<std::vector<ActiveKey>> load_active_keys(pg::Link& link, const crypto::MasterKeys& keys,
                                              const Source& source) {
  pg::Params params(source.id);
  const pg::Rows rows = co_await link.run_one(sql::load_source_secrets, std::move(params));
  std::vector<ActiveKey> active;
  for (const auto& opened : read_secrets(rows, keys, source.id)) {
    if (!opened.text) continue;
    auto key = key_of_secret(source.provider, source.settings.signature, *opened.text);
    if (key) active.push_back({std::move(*key), opened.secret.expires_at});
  }
  co_return active;
}

}  // namespace postrider::inbox
