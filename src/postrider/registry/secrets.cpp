#include "postrider/registry/secrets.hpp"

#include <algorithm>
#include <utility>

#include "postrider/registry/audit.hpp"
#include "postrider/registry/columns.hpp"
#include "postrider/registry/control_log.hpp"
#include "postrider/registry/sealing.hpp"
#include "postrider/registry/secret_reference.hpp"
#include "postrider/registry/secrets.sql.hpp"
#include "postrider/registry/subscriptions.sql.hpp"

namespace postrider::registry {

namespace {

using model::EndpointId;
using runtime::Task;

// A secret as it is stored, opened if possible.
struct OpenedSecret {
  Secret secret;
  std::optional<std::string> text;
};

crypto::SignatureScheme read_scheme(const sql::load_secrets::Row& row) {
  return known(crypto::parse_signature_scheme(row.signature));
}

// Masks the text and derives the public key.
void describe(Secret& secret, crypto::SignatureScheme scheme, const std::string& text) {
  if (is_reference(text)) {
    secret.reference = text;
    return;
  }
  secret.masked = crypto::masked_secret(text);
  const auto key = crypto::SigningKey::from_secret(scheme, text);
  if (key && key->is_asymmetric()) secret.public_key = key->public_text();
}

std::vector<OpenedSecret> read_secrets(const pg::RowsOf<sql::load_secrets>& rows, const Sealing& sealing) {
  std::vector<OpenedSecret> secrets;
  for (const auto& row : rows) {
    OpenedSecret opened;
    opened.secret.id.uuid = row.id;
    opened.secret.created_at = row.created_at;
    opened.secret.expires_at = row.expires_at;
    if (auto text = sealing.open_secret(opened.secret.id, row.sealed.view)) {
      describe(opened.secret, read_scheme(row), *text);
      opened.text = std::move(*text);
    }
    secrets.push_back(std::move(opened));
  }
  return secrets;
}

// The text to rotate to, or why not.
base::Result<std::string, Rejection> choose_secret(const std::vector<OpenedSecret>& active,
                                                   crypto::SignatureScheme scheme, const Rotation& rotation,
                                                   const ReferencePolicy* references) {
  if (rotation.overlap.count() > 0 && active.size() >= secrets_max)
    return base::Failure{Rejection{RejectionKind::too_many_secrets,
                                   "The endpoint already has " + std::to_string(active.size()) +
                                       " active secrets, and the limit is " + std::to_string(secrets_max) +
                                       ". Delete one that is in its overlap, or rotate with overlap_seconds "
                                       "0."}};
  if (!rotation.secret) return crypto::generate_secret(scheme);
  if (const auto why = why_not_secret(references, scheme, *rotation.secret))
    return base::Failure{Rejection{RejectionKind::secret_invalid, *why}};
  for (const auto& other : active)
    if (other.text == rotation.secret) return base::Failure{Rejection{RejectionKind::secret_in_use}};
  return *rotation.secret;
}

}  // namespace

Task<base::Result<std::vector<Secret>, Rejection>> list_secrets(pg::Link& link, const Context& context,
                                                                EndpointRef ref) {
  const auto found =
      co_await link.run(sql::find_endpoint_id{.tenant = ref.tenant, .public_id = ref.endpoint});
  if (found.empty()) co_return base::Failure{Rejection{RejectionKind::unknown_endpoint}};
  const Sealing sealing{context.keys, EndpointId{found.front().id}};
  const auto rows = co_await link.run(sql::load_secrets{.endpoint = sealing.endpoint.uuid});
  std::vector<Secret> secrets;
  for (auto& opened : read_secrets(rows, sealing)) secrets.push_back(std::move(opened.secret));
  co_return secrets;
}

Task<base::Result<RotatedSecret, Rejection>> rotate_secret(pg::Link& link, const Context& context,
                                                           const Caller& caller, EndpointRef ref,
                                                           Rotation rotation) {
  pg::Transaction transaction = co_await link.begin();
  const auto found =
      co_await transaction.run(sql::lock_endpoint{.tenant = ref.tenant, .public_id = ref.endpoint});
  if (found.empty()) co_return base::Failure{Rejection{RejectionKind::unknown_endpoint}};
  const Sealing sealing{context.keys, EndpointId{found.front().id}};
  const base::Uuid& endpoint = sealing.endpoint.uuid;
  const auto loaded = co_await transaction.run(sql::load_secrets{.endpoint = endpoint});
  if (loaded.empty()) throw pg::Error(pg::Kind::other, "the endpoint has no secret any more");
  const crypto::SignatureScheme scheme = read_scheme(loaded.front());
  auto text = choose_secret(read_secrets(loaded, sealing), scheme, rotation, context.references);
  if (!text) co_return base::Failure{text.error()};

  const model::SecretId id{context.ids.next()};
  const std::string sealed = sealing.seal_secret(id, *text);
  pg::Batch batch;
  batch.add(
      sql::start_overlap{.seconds = static_cast<double>(rotation.overlap.count()), .endpoint = endpoint});
  batch.add(sql::delete_expired_secrets{.endpoint = endpoint});
  batch.add(sql::insert_secret{.id = id.uuid, .endpoint = endpoint, .sealed = pg::Bytes(sealed)});
  const auto active = batch.add(sql::load_secrets{.endpoint = endpoint});
  Snapshot after;
  after.add("secret_id", id.public_id())
      .add("secret", masked_text)
      .add("overlap_seconds", rotation.overlap.count())
      .add("is_given", rotation.secret.has_value());
  add_audit(
      batch, caller,
      {.action = "secret.rotate", .tenant = ref.tenant, .object = ref.endpoint, .after = std::move(after)});
  add_note(batch, ChangeKind::endpoint, ref.tenant, sealing.endpoint);
  pg::Results results = co_await transaction.run(std::move(batch));
  co_await transaction.commit();
  auto current = std::move(read_secrets(results.take(active), sealing).front());
  RotatedSecret rotated{std::move(current.secret), std::move(*text)};
  co_return rotated;
}

Task<std::optional<Rejection>> delete_secret(pg::Link& link, const Caller& caller, EndpointRef ref,
                                             model::SecretId secret) {
  pg::Transaction transaction = co_await link.begin();
  const auto found =
      co_await transaction.run(sql::lock_endpoint{.tenant = ref.tenant, .public_id = ref.endpoint});
  if (found.empty()) co_return Rejection{RejectionKind::unknown_endpoint};
  const EndpointId endpoint{found.front().id};
  const auto [active, deleted] =
      co_await transaction.run(sql::load_secrets{.endpoint = endpoint.uuid},
                               sql::delete_secret{.id = secret.uuid, .endpoint = endpoint.uuid});
  if (deleted.affected_rows() == 0) {
    const bool is_current = !active.empty() && active.front().id == secret.uuid;
    co_return Rejection{is_current ? RejectionKind::is_current_secret : RejectionKind::unknown_secret};
  }
  Snapshot before;
  before.add("secret_id", secret.public_id()).add("secret", masked_text);
  pg::Batch note;
  add_audit(
      note, caller,
      {.action = "secret.delete", .tenant = ref.tenant, .object = ref.endpoint, .before = std::move(before)});
  add_note(note, ChangeKind::endpoint, ref.tenant, endpoint);
  co_await transaction.run(std::move(note));
  co_await transaction.commit();
  co_return std::nullopt;
}

}  // namespace postrider::registry
