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
  batch.add(sql::write_audit{.actor_kind = label(caller.kind),
                             .actor = caller.id,
                             .action = entry.action,
                             .tenant = entry.tenant,
                             .object = entry.object,
                             .before = json_column(before),
                             .after = json_column(after),
                             .reason = entry.reason,
                             .address = caller.address,
                             .request_id = caller.request_id,
                             .on_behalf_of = model::label(caller.actor),
                             .actor_name = caller.name});
}

runtime::Task<std::vector<AuditRecord>> list_audit(pg::Link& link, AuditFilter filter) {
  const auto rows = co_await link.run(sql::list_audit{.tenant = filter.tenant,
                                                      .actor = filter.actor,
                                                      .is_customer = filter.is_customer,
                                                      .action = filter.action,
                                                      .object = filter.object,
                                                      .since = filter.since,
                                                      .until = filter.until,
                                                      .before_at = filter.before_at,
                                                      .before_id = filter.before_id,
                                                      .limit = filter.limit});
  std::vector<AuditRecord> records;
  records.reserve(rows.size());
  for (const auto& row : rows) {
    AuditRecord record;
    record.id = row.id;
    record.at = row.at;
    record.actor_kind = row.actor_kind;
    record.actor = row.actor;
    record.actor_name = row.actor_name;
    record.on_behalf_of = known(model::parse_actor(row.on_behalf_of));
    record.action = row.action;
    record.tenant = row.tenant_id;
    record.object = row.object;
    record.before = row.before;
    record.after = row.after;
    record.reason = row.reason;
    record.address = row.address;
    record.request_id = row.request_id;
    records.push_back(std::move(record));
  }
  co_return records;
}

}  // namespace postrider::registry
