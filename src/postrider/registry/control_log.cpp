#include "postrider/registry/control_log.hpp"

#include <array>
#include <string_view>
#include <utility>

#include "postrider/registry/control_log.sql.hpp"

namespace postrider::registry {

namespace {

constexpr std::array<std::pair<ChangeKind, std::string_view>, 9> kKinds{{
    {ChangeKind::tenant, "tenant"},
    {ChangeKind::endpoint, "endpoint"},
    {ChangeKind::subscriptions, "subscriptions"},
    {ChangeKind::key, "key"},
    {ChangeKind::source, "source"},
    {ChangeKind::event_type, "event_type"},
    {ChangeKind::retry, "retry"},
    {ChangeKind::cancel, "cancel"},
    {ChangeKind::brakes, "brakes"},
}};

ChangeKind parse_kind(std::string_view text) {
  for (const auto& [kind, word] : kKinds)
    if (word == text) return kind;
  return ChangeKind::other;
}

template <class Id>
std::optional<Id> optional_id(const std::optional<base::Uuid>& uuid) {
  if (!uuid) return std::nullopt;
  return Id{*uuid};
}

std::vector<Change> read(const pg::RowsOf<sql::read_changes>& rows) {
  std::vector<Change> changes;
  changes.reserve(rows.size());
  for (const auto& row : rows) {
    Change change;
    change.version = row.version;
    change.kind = parse_kind(row.kind);
    change.tenant_id = row.tenant_id;
    change.endpoint_id = optional_id<model::EndpointId>(row.endpoint_id);
    change.delivery_id = optional_id<model::DeliveryId>(row.delivery_id);
    changes.push_back(std::move(change));
  }
  return changes;
}

}  // namespace

std::string_view label(ChangeKind kind) {
  for (const auto& [known, word] : kKinds)
    if (known == kind) return word;
  return "other";
}

void add_note(pg::Batch& batch, ChangeKind kind, const model::TenantId& tenant,
              std::optional<model::EndpointId> endpoint) {
  std::optional<base::Uuid> endpoint_uuid;
  if (endpoint) endpoint_uuid = endpoint->uuid;
  batch.add(sql::record_change{.kind = label(kind), .tenant = tenant, .endpoint = endpoint_uuid});
}

void add_note(pg::Batch& batch, ChangeKind kind) {
  batch.add(sql::note_common_change{.kind = label(kind)});
}

runtime::Task<int64_t> current_version(pg::Link& link) {
  const auto rows = co_await link.run(sql::current_version{});
  co_return rows.front().version;
}

runtime::Task<int64_t> current_version(pg::Connection& connection) {
  const auto rows = co_await connection.run(sql::current_version{});
  co_return rows.front().version;
}

runtime::Task<std::vector<Change>> read_changes(pg::Link& link, int64_t after) {
  const auto rows = co_await link.run(sql::read_changes{.after = after, .limit = changes_max});
  co_return read(rows);
}

runtime::Task<std::vector<Change>> read_changes(pg::Connection& connection, int64_t after) {
  const auto rows = co_await connection.run(sql::read_changes{.after = after, .limit = changes_max});
  co_return read(rows);
}

}  // namespace postrider::registry
