#include "postrider/web/portal_links.hpp"

#include <utility>

#include "postrider/registry/api_keys.hpp"
#include "postrider/registry/audit.hpp"
#include "postrider/registry/control_log.hpp"
#include "postrider/web/portal_links.sql.hpp"
#include "postrider/web/sessions.sql.hpp"

namespace postrider::web {

namespace {

using registry::Caller;
using runtime::Task;

constexpr std::string_view kPortal = "portal";

template <class Column>
std::optional<std::string> text_of(const Column& column) {
  if (!column) return std::nullopt;
  return std::string(*column);
}

// Comes after every ID.
base::Uuid after_all() {
  base::Uuid id;
  id.bytes.fill(0xFF);
  return id;
}

int32_t count_of(std::chrono::seconds span) {
  return static_cast<int32_t>(span.count());
}

PortalLink read(const sql::PortalLinkRow& row) {
  PortalLink link;
  link.id.uuid = row.id;
  link.settings.tenant = row.tenant_id;
  link.settings.key.uuid = row.created_by;
  link.settings.session = std::chrono::seconds(row.session_seconds);
  link.settings.is_read_only = row.is_read_only;
  link.settings.sees_payloads = row.payloads;
  link.settings.is_preview = row.is_preview;
  link.settings.label = text_of(row.label);
  link.settings.origin = text_of(row.origin);
  link.settings.path = text_of(row.path);
  link.created_at = row.created_at;
  link.expires_at = row.expires_at;
  link.used_at = row.used_at;
  link.session_last_seen_at = row.session_last_seen_at;
  link.session_expires_at = row.session_expires_at;
  return link;
}

registry::Snapshot snapshot(const PortalLinkSettings& settings) {
  registry::Snapshot fields;
  fields.add("access", settings.is_read_only ? "read" : "manage")
      .add("payloads", settings.sees_payloads)
      .add("label", settings.label)
      .add("origin", settings.origin)
      .add("session_seconds", static_cast<int64_t>(settings.session.count()));
  return fields;
}

NewSession session_of(const sql::use_link::Row& row) {
  NewSession wanted;
  wanted.kind = SessionKind::portal;
  wanted.key.uuid = row.key_id;
  wanted.link = model::LinkId{row.id};
  wanted.tenant = text_of(row.tenant_id);
  wanted.is_read_only = row.is_read_only;
  wanted.sees_payloads = row.payloads;
  wanted.is_preview = row.is_preview;
  wanted.is_embedded = row.origin.has_value();
  wanted.label = text_of(row.label);
  wanted.limits = {std::chrono::seconds(row.session_seconds), portal_limits.total};
  return wanted;
}

}  // namespace

Task<CreatedPortalLinkResult> create_portal_link(pg::Link& link, Caller caller, PortalLinkSettings settings,
                                                 int links_max) {
  CreatedPortalLink created;
  created.token = generate_token();
  const TokenHash hash = hash_token(created.token);
  const model::LinkId id{registry::make_key_id().uuid};
  pg::Transaction transaction = co_await link.begin();
  const auto [tenants, unused] =
      co_await transaction.run(sql::lock_tenant_of_links{.tenant = settings.tenant},
                               sql::count_unused_links{.tenant = settings.tenant});
  if (tenants.empty()) co_return base::Failure{LinkRejection::unknown_tenant};
  if (unused.front().count >= links_max) co_return base::Failure{LinkRejection::too_many_links};
  pg::Batch save;
  save.add(sql::delete_ended_links{});
  save.add(sql::insert_portal_link{.id = id.uuid,
                                   .hash = pg::Bytes(hash.view()),
                                   .key = settings.key.uuid,
                                   .tenant = settings.tenant,
                                   .is_read_only = settings.is_read_only,
                                   .payloads = settings.sees_payloads,
                                   .is_preview = settings.is_preview,
                                   .session_seconds = count_of(settings.session),
                                   .label = settings.label,
                                   .origin = settings.origin,
                                   .path = settings.path,
                                   .seconds = count_of(settings.lifetime)});
  registry::add_audit(save, caller,
                      {.action = settings.is_preview ? "portal.preview" : "portal_link.create",
                       .tenant = settings.tenant,
                       .object = id.public_id(),
                       .after = snapshot(settings)});
  const auto rows = save.add(
      sql::list_portal_links{.tenant = settings.tenant, .before = after_all(), .id = id.uuid, .limit = 1});
  pg::Results results = co_await transaction.run(std::move(save));
  created.link = read(results.take(rows).front());
  co_await transaction.commit();
  co_return created;
}

Task<std::vector<PortalLink>> list_portal_links(pg::Link& link, PortalLinkFilter filter) {
  std::optional<base::Uuid> id;
  if (filter.id) id = filter.id->uuid;
  const base::Uuid before = filter.before ? filter.before->uuid : after_all();
  const auto rows = co_await link.run(
      sql::list_portal_links{.tenant = filter.tenant, .before = before, .id = id, .limit = filter.limit});
  std::vector<PortalLink> links;
  for (const auto& row : rows) links.push_back(read(row));
  co_return links;
}

Task<bool> delete_portal_link(pg::Link& link, Caller caller, PortalLinkName name) {
  pg::Transaction transaction = co_await link.begin();
  const auto rows =
      co_await transaction.run(sql::delete_portal_link{.id = name.id.uuid, .tenant = name.tenant});
  if (rows.empty()) co_return false;
  pg::Batch last;
  registry::add_audit(last, caller,
                      {.action = "portal_link.delete", .tenant = name.tenant, .object = name.id.public_id()});
  registry::add_note(last, registry::ChangeKind::key);  // every node forgets its session
  co_await transaction.run(std::move(last));
  co_await transaction.commit();
  co_return true;
}

Task<std::optional<OpenedPortal>> follow_portal_link(pg::Link& link, Caller caller, std::string token) {
  if (!is_token(token)) co_return std::nullopt;
  const TokenHash hash = hash_token(token);
  pg::Transaction transaction = co_await link.begin();
  const auto rows = co_await transaction.run(sql::use_link{.hash = pg::Bytes(hash.view()), .kind = kPortal});
  if (rows.empty()) co_return std::nullopt;
  const auto row = rows.front();
  OpenedPortal opened;
  opened.tenant = text_of(row.tenant_id).value_or("");
  opened.origin = text_of(row.origin);
  opened.path = text_of(row.path);
  NewSession wanted = session_of(row);
  opened.session = co_await insert_session(transaction, std::move(caller), std::move(wanted));
  co_await transaction.commit();
  co_return opened;
}

}  // namespace postrider::web
