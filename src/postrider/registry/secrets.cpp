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

crypto::SignatureScheme read_scheme(const pg::Rows& rows) {
  return known(crypto::parse_signature_scheme(rows.get<std::string_view>(0, 4)));
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

std::vector<OpenedSecret> read_secrets(const pg::Rows& rows, const Sealing& sealing) {
  std::vector<OpenedSecret> secrets;
  for (size_t row = 0; row < rows.size(); ++row) {
    OpenedSecret opened;
    opened.secret.id.uuid = rows.get<base::Uuid>(row, 0);
    opened.secret.created_at = rows.get<base::Timestamp>(row, 2);
    opened.secret.expires_at = rows.get<std::optional<base::Timestamp>>(row, 3);
    if (auto text = sealing.open_secret(rows.get<pg::Bytes>(row, 1).view)) {
      describe(opened.secret, read_scheme(rows), *text);
      opened.text = std::move(*text);
    }
    secrets.push_back(std::move(opened));
  }
  return secrets;
}

// The text to rotate to, or why not.
base::Result<std::string, Refusal> choose_secret(const std::vector<OpenedSecret>& active,
                                                 crypto::SignatureScheme scheme, const Rotation& rotation,
                                                 const ReferencePolicy* references) {
  if (rotation.overlap.count() > 0 && active.size() >= secrets_max)
    return base::Failure{Refusal{RefusalKind::too_many_secrets}};
  if (!rotation.secret) return crypto::generate_secret(scheme);
  if (const auto why = why_not_secret(references, scheme, *rotation.secret))
    return base::Failure{Refusal{RefusalKind::secret_unfit, *why}};
  for (const auto& other : active)
    if (other.text == rotation.secret) return base::Failure{Refusal{RefusalKind::secret_in_use}};
  return *rotation.secret;
}

}  // namespace

Task<base::Result<std::vector<Secret>, Refusal>> list_secrets(pg::Link& link, const Context& context,
                                                              EndpointRef ref) {
  pg::Params wanted(ref.tenant, ref.endpoint);
  const pg::Rows found = co_await link.run_one(sql::find_endpoint_id, std::move(wanted));
  if (found.empty()) co_return base::Failure{Refusal{RefusalKind::unknown_endpoint}};
  const Sealing sealing{context.keys, EndpointId{found.get<base::Uuid>(0, 0)}};
  pg::Params endpoint(sealing.endpoint.uuid);
  const pg::Rows rows = co_await link.run_one(sql::load_secrets, std::move(endpoint));
  std::vector<Secret> secrets;
  for (auto& opened : read_secrets(rows, sealing)) secrets.push_back(std::move(opened.secret));
  co_return secrets;
}

Task<base::Result<RotatedSecret, Refusal>> rotate_secret(pg::Link& link, const Context& context,
                                                         const Caller& caller, EndpointRef ref,
                                                         Rotation rotation) {
  pg::Transaction transaction = co_await link.begin();
  pg::Batch lock;
  lock.with(sql::lock_endpoint, ref.tenant, ref.endpoint);
  const std::vector<pg::Rows> found = co_await transaction.run(std::move(lock));
  if (found[0].empty()) co_return base::Failure{Refusal{RefusalKind::unknown_endpoint}};
  const Sealing sealing{context.keys, EndpointId{found[0].get<base::Uuid>(0, 0)}};
  const base::Uuid& endpoint = sealing.endpoint.uuid;
  pg::Batch load;
  load.with(sql::load_secrets, endpoint);
  const std::vector<pg::Rows> loaded = co_await transaction.run(std::move(load));
  CHECK(!loaded[0].empty());  // an endpoint that is not deleted has a current secret
  const crypto::SignatureScheme scheme = read_scheme(loaded[0]);
  auto text = choose_secret(read_secrets(loaded[0], sealing), scheme, rotation, context.references);
  if (!text) co_return base::Failure{text.error()};

  const model::SecretId id{context.ids.next()};
  const std::string sealed = sealing.seal_secret(*text);
  pg::Batch batch;
  batch.with(sql::start_overlap, endpoint, static_cast<double>(rotation.overlap.count()))
      .with(sql::delete_expired_secrets, endpoint)
      .with(sql::insert_secret, id.uuid, endpoint, pg::Bytes{sealed})
      .with(sql::load_secrets, endpoint);
  Snapshot after;
  after.add("secret_id", id.outside())
      .add("secret", masked_text)
      .add("overlap_seconds", rotation.overlap.count())
      .add("is_given", rotation.secret.has_value());
  add_audit(
      batch, caller,
      {.action = "secret.rotate", .tenant = ref.tenant, .object = ref.endpoint, .after = std::move(after)});
  add_note(batch, ChangeKind::endpoint, ref.tenant, sealing.endpoint);
  const std::vector<pg::Rows> answers = co_await transaction.run(std::move(batch));
  co_await transaction.commit();
  auto current = std::move(read_secrets(answers[3], sealing).front());
  RotatedSecret rotated{std::move(current.secret), std::move(*text)};
  co_return rotated;
}

Task<std::optional<Refusal>> delete_secret(pg::Link& link, const Caller& caller, EndpointRef ref,
                                           model::SecretId secret) {
  pg::Transaction transaction = co_await link.begin();
  pg::Batch lock;
  lock.with(sql::lock_endpoint, ref.tenant, ref.endpoint);
  const std::vector<pg::Rows> found = co_await transaction.run(std::move(lock));
  if (found[0].empty()) co_return Refusal{RefusalKind::unknown_endpoint};
  const EndpointId endpoint{found[0].get<base::Uuid>(0, 0)};
  pg::Batch remove;
  remove.with(sql::load_secrets, endpoint.uuid).with(sql::delete_secret, endpoint.uuid, secret.uuid);
  const std::vector<pg::Rows> removed = co_await transaction.run(std::move(remove));
  if (removed[1].affected_rows() == 0) {
    const bool is_current = !removed[0].empty() && removed[0].get<base::Uuid>(0, 0) == secret.uuid;
    co_return Refusal{is_current ? RefusalKind::is_current_secret : RefusalKind::unknown_secret};
  }
  Snapshot before;
  before.add("secret_id", secret.outside()).add("secret", masked_text);
  pg::Batch note;
  add_audit(
      note, caller,
      {.action = "secret.delete", .tenant = ref.tenant, .object = ref.endpoint, .before = std::move(before)});
  add_note(note, ChangeKind::endpoint, ref.tenant, endpoint);
  const std::vector<pg::Rows> noted = co_await transaction.run(std::move(note));
  co_await transaction.commit();
  co_return std::nullopt;
}

}  // namespace postrider::registry
