#include "postrider/registry/audit.hpp"

#include <array>
#include <utility>

#include "postrider/base/check.hpp"
#include "postrider/registry/audit.sql.hpp"
#include "postrider/registry/columns.hpp"

namespace postrider::registry {

namespace {

constexpr std::array<std::string_view, 6> kActorKinds{"key", "system", "sql", "console", "portal", "command"};

std::optional<std::string> text_of(const std::optional<Snapshot>& snapshot) {
  if (!snapshot) return std::nullopt;
  return snapshot->text();
}

}  // namespace

std::string Snapshot::text() const {
  std::string text = "{";
  for (const auto& member : members_) {
    if (text.size() > 1) text += ',';
    text += member.shown;
  }
  return text + "}";
}

void Snapshot::keep_differences(Snapshot& before, Snapshot& after) {
  CHECK(before.members_.size() == after.members_.size());
  Snapshot old_kept, new_kept;
  for (size_t i = 0; i < before.members_.size(); ++i) {
    if (before.members_[i].stored == after.members_[i].stored) continue;
    old_kept.members_.push_back(std::move(before.members_[i]));
    new_kept.members_.push_back(std::move(after.members_[i]));
  }
  before = std::move(old_kept);
  after = std::move(new_kept);
}

std::string_view label(ActorKind kind) {
  return kActorKinds[static_cast<size_t>(kind)];
}

void add_audit(pg::Batch& batch, const Caller& caller, AuditEntry entry) {
  if (entry.before && entry.after) Snapshot::keep_differences(*entry.before, *entry.after);
  const auto before = text_of(entry.before), after = text_of(entry.after);
  batch.with(sql::write_audit, label(caller.kind), caller.id, entry.action, entry.tenant, entry.object,
             json_column(before), json_column(after), entry.reason, caller.address, caller.request_id);
}

runtime::Task<std::vector<AuditRecord>> list_audit(pg::Link& link, AuditFilter filter) {
  pg::Params params(filter.tenant, filter.actor, filter.action, filter.object, filter.since, filter.until,
                    filter.before_at, filter.before_id, filter.limit);
  const pg::Rows rows = co_await link.run_one(sql::list_audit, std::move(params));
  std::vector<AuditRecord> records;
  records.reserve(rows.size());
  using OptionalText = std::optional<std::string>;
  for (size_t row = 0; row < rows.size(); ++row) {
    AuditRecord record;
    record.id = rows.get<int64_t>(row, 0);
    record.at = rows.get<base::Timestamp>(row, 1);
    record.actor_kind = rows.get<std::string>(row, 2);
    record.actor = rows.get<std::string>(row, 3);
    record.action = rows.get<std::string>(row, 4);
    record.tenant = rows.get<OptionalText>(row, 5);
    record.object = rows.get<std::string>(row, 6);
    record.before = rows.get<OptionalText>(row, 7);
    record.after = rows.get<OptionalText>(row, 8);
    record.reason = rows.get<OptionalText>(row, 9);
    record.address = rows.get<OptionalText>(row, 10);
    record.request_id = rows.get<OptionalText>(row, 11);
    records.push_back(std::move(record));
  }
  co_return records;
}

}  // namespace postrider::registry
