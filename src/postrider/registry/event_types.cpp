#include "postrider/registry/event_types.hpp"

#include <utility>

#include "postrider/registry/audit.hpp"
#include "postrider/registry/columns.hpp"
#include "postrider/registry/control_log.hpp"
#include "postrider/registry/event_types.sql.hpp"

namespace postrider::registry {

namespace {

using runtime::Task;

EventType read_type(const pg::Rows& rows, size_t row) {
  EventType type;
  type.name = rows.get<std::string>(row, 0);
  type.settings.description = rows.get<std::optional<std::string>>(row, 1);
  type.settings.validation = known(parse_validation(rows.get<std::string_view>(row, 2)));
  type.revision = rows.get<int32_t>(row, 3);
  type.created_at = rows.get<base::Timestamp>(row, 4);
  type.updated_at = rows.get<base::Timestamp>(row, 5);
  auto versions = rows.get<std::vector<std::string>>(row, 6);
  auto schemas = rows.get<std::vector<std::optional<std::string>>>(row, 7);
  auto examples = rows.get<std::vector<std::optional<std::string>>>(row, 8);
  const auto deprecated_at = rows.get<std::vector<std::optional<base::Timestamp>>>(row, 9);
  for (size_t i = 0; i < versions.size(); ++i)
    type.settings.versions.push_back(
        {std::move(versions[i]), std::move(schemas[i]), std::move(examples[i]), deprecated_at[i]});
  return type;
}

void add_versions(pg::Batch& batch, const std::string& name, const std::vector<EventTypeVersion>& versions) {
  std::vector<std::string> names;
  std::vector<std::optional<std::string>> schemas, examples;
  std::vector<std::optional<base::Timestamp>> deprecated_at;
  for (const auto& version : versions) {
    names.push_back(version.version);
    schemas.push_back(version.schema);
    examples.push_back(version.example);
    deprecated_at.push_back(version.deprecated_at);
  }
  batch.with(sql::delete_event_type_versions, name)
      .with(sql::insert_event_type_versions, name, names, schemas, examples, deprecated_at);
}

// As the audit log shows it: schemas can be large, and the catalogue keeps them.
Snapshot snapshot(const EventTypeSettings& settings) {
  std::string versions;
  for (const EventTypeVersion& version : settings.versions)
    versions += (versions.empty() ? "" : ", ") + version.version;
  Snapshot shown;
  shown.add("description", settings.description).add("validation", label(settings.validation));
  shown.add("versions", versions);
  return shown;
}

}  // namespace

std::string_view label(Validation validation) {
  switch (validation) {
    case Validation::off:
      return "off";
    case Validation::warn:
      return "warn";
    case Validation::reject:
      return "reject";
  }
  return "";
}

std::optional<Validation> parse_validation(std::string_view text) {
  for (const auto validation : {Validation::off, Validation::warn, Validation::reject})
    if (label(validation) == text) return validation;
  return std::nullopt;
}

Task<std::optional<EventType>> find_event_type(pg::Link& link, std::string name) {
  pg::Params params(std::string_view(), 1, name);
  const pg::Rows rows = co_await link.run_one(sql::load_event_types, std::move(params));
  if (rows.empty()) co_return std::nullopt;
  co_return read_type(rows, 0);
}

Task<std::vector<EventType>> list_event_types(pg::Link& link, std::string after, int limit) {
  pg::Params params(after, limit, std::optional<std::string>());
  const pg::Rows rows = co_await link.run_one(sql::load_event_types, std::move(params));
  std::vector<EventType> types;
  for (size_t row = 0; row < rows.size(); ++row) types.push_back(read_type(rows, row));
  co_return types;
}

Task<base::Result<EventTypePut, Refusal>> put_event_type(pg::Link& link, const Caller& caller,
                                                         PutEventType wanted) {
  pg::Transaction transaction = co_await link.begin();
  const std::optional<std::string> one = wanted.name;
  pg::Batch lock;
  lock.with(sql::lock_event_type, wanted.name)
      .with(sql::load_event_types, std::string_view(), 1, one)
      .with(sql::count_event_types);
  const std::vector<pg::Rows> found = co_await transaction.run(std::move(lock));
  EventTypePut put;
  put.is_new = found[1].empty();
  if (!put.is_new) put.type = read_type(found[1], 0);
  if (put.is_new ? caller.if_match.is_set : !caller.if_match.accepts(put.type.revision))
    co_return base::Failure{Refusal{RefusalKind::changed_meanwhile}};
  if (!put.is_new && put.type.settings == wanted.settings) co_return put;
  if (put.is_new && found[2].get<int32_t>(0, 0) >= event_types_max)
    co_return base::Failure{Refusal{RefusalKind::too_many_event_types}};

  AuditEntry entry{.action = put.is_new ? "event_type.create" : "event_type.change", .object = wanted.name};
  if (!put.is_new) entry.before = snapshot(put.type.settings);
  entry.after = snapshot(wanted.settings);
  pg::Batch batch;
  batch.with(sql::upsert_event_type, wanted.name, wanted.settings.description,
             label(wanted.settings.validation));
  add_versions(batch, wanted.name, wanted.settings.versions);
  const size_t loaded = batch.size();
  batch.with(sql::load_event_types, std::string_view(), 1, one);
  add_audit(batch, caller, std::move(entry));
  add_note(batch, ChangeKind::event_type);
  const std::vector<pg::Rows> answers = co_await transaction.run(std::move(batch));
  co_await transaction.commit();
  put.type = read_type(answers[loaded], 0);
  co_return put;
}

Task<std::optional<Refusal>> delete_event_type(pg::Link& link, const Caller& caller, std::string name) {
  pg::Transaction transaction = co_await link.begin();
  pg::Batch lock;
  lock.with(sql::lock_event_type, name);
  const std::vector<pg::Rows> found = co_await transaction.run(std::move(lock));
  if (found[0].empty()) co_return Refusal{RefusalKind::unknown_event_type};
  if (!caller.if_match.accepts(found[0].get<int32_t>(0, 0)))
    co_return Refusal{RefusalKind::changed_meanwhile};
  pg::Batch batch;
  batch.with(sql::delete_event_type, name);
  add_audit(batch, caller, {.action = "event_type.delete", .object = name});
  add_note(batch, ChangeKind::event_type);
  const std::vector<pg::Rows> done = co_await transaction.run(std::move(batch));
  co_await transaction.commit();
  co_return std::nullopt;
}

}  // namespace postrider::registry
