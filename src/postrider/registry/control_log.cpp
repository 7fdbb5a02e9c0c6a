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
std::optional<Id> optional_id(const pg::Rows& rows, size_t row, size_t column) {
  const auto uuid = rows.get<std::optional<base::Uuid>>(row, column);
  if (!uuid) return std::nullopt;
  return Id{*uuid};
}

std::vector<Change> read(const pg::Rows& rows) {
  std::vector<Change> changes;
  changes.reserve(rows.size());
  for (size_t row = 0; row < rows.size(); ++row) {
    Change change;
    change.version = rows.get<int64_t>(row, 0);
    change.kind = parse_kind(rows.get<std::string_view>(row, 1));
    change.tenant_id = rows.get<std::optional<std::string>>(row, 2);
    change.endpoint_id = optional_id<model::EndpointId>(rows, row, 3);
    change.delivery_id = optional_id<model::DeliveryId>(rows, row, 4);
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
  batch.with(sql::note_change, label(kind), tenant, endpoint_uuid);
}

void add_note(pg::Batch& batch, ChangeKind kind) {
  batch.with(sql::note_common_change, label(kind));
}

runtime::Task<int64_t> current_version(pg::Link& link) {
  const pg::Rows rows = co_await link.run_one(sql::current_version);
  co_return rows.get<int64_t>(0, 0);
}

runtime::Task<int64_t> current_version(pg::Connection& connection) {
  const pg::Rows rows = co_await connection.run_one(sql::current_version);
  co_return rows.get<int64_t>(0, 0);
}

runtime::Task<std::vector<Change>> read_changes(pg::Link& link, int64_t after) {
  pg::Params params(after, changes_max);
  const pg::Rows rows = co_await link.run_one(sql::read_changes, std::move(params));
  co_return read(rows);
}

runtime::Task<std::vector<Change>> read_changes(pg::Connection& connection, int64_t after) {
  pg::Params params(after, changes_max);
  const pg::Rows rows = co_await connection.run_one(sql::read_changes, std::move(params));
  co_return read(rows);
}

}  // namespace postrider::registry
