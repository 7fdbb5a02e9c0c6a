#include "postrider/registry/event_types.hpp"

#include <utility>

#include "postrider/registry/audit.hpp"
#include "postrider/registry/columns.hpp"
#include "postrider/registry/control_log.hpp"
#include "postrider/registry/event_types.sql.hpp"

namespace postrider::registry {

namespace {

base::Failure<Rejection> catalogue_full() {
  return base::Failure{Rejection{RejectionKind::too_many_event_types,
                                 "The catalogue has " + std::to_string(event_types_max) +
                                     " event types, which is the limit. Delete one that is no longer used."}};
}

using runtime::Task;

EventType read_type(const sql::load_event_types::Row& row) {
  EventType type;
  type.name = row.name;
  type.settings.description = row.description;
  type.settings.validation = known(parse_validation(row.validation));
  type.revision = row.revision;
  type.created_at = row.created_at;
  type.updated_at = row.updated_at;
  for (size_t i = 0; i < row.versions.size(); ++i) {
    EventTypeVersion& version = type.settings.versions.emplace_back();
    version.version = row.versions[i];
    version.schema = row.schemas[i];
    version.example = row.examples[i];
    version.deprecated_at = row.deprecated_at[i];
  }
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
  batch.add(sql::delete_event_type_versions{.name = name});
  batch.add(sql::insert_event_type_versions{.name = name,
                                            .versions = names,
                                            .schemas = schemas,
                                            .examples = examples,
                                            .deprecated_at = deprecated_at});
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
  const auto rows = co_await link.run(sql::load_event_types{.after = "", .name = name, .limit = 1});
  if (rows.empty()) co_return std::nullopt;
  co_return read_type(rows.front());
}

Task<std::vector<EventType>> list_event_types(pg::Link& link, std::string after, int limit) {
  const auto rows = co_await link.run(sql::load_event_types{.after = after, .name = {}, .limit = limit});
  std::vector<EventType> types;
  for (const auto& row : rows) types.push_back(read_type(row));
  co_return types;
}

Task<base::Result<EventTypePut, Rejection>> put_event_type(pg::Link& link, const Caller& caller,
                                                           PutEventType wanted) {
  pg::Transaction transaction = co_await link.begin();
  const std::optional<std::string> one = wanted.name;
  const auto [locked, type_rows, counted] = co_await transaction.run(
      sql::lock_event_type{.name = wanted.name}, sql::load_event_types{.after = "", .name = one, .limit = 1},
      sql::count_event_types{});
  EventTypePut put;
  put.is_new = type_rows.empty();
  if (!put.is_new) put.type = read_type(type_rows.front());
  if (put.is_new ? caller.if_match.is_set : !caller.if_match.accepts(put.type.revision))
    co_return base::Failure{Rejection{RejectionKind::changed_meanwhile}};
  if (!put.is_new && put.type.settings == wanted.settings) co_return put;
  if (put.is_new && counted.front().count >= event_types_max) co_return catalogue_full();

  AuditEntry entry{.action = put.is_new ? "event_type.create" : "event_type.update", .object = wanted.name};
  if (!put.is_new) entry.before = snapshot(put.type.settings);
  entry.after = snapshot(wanted.settings);
  pg::Batch batch;
  batch.add(sql::upsert_event_type{.name = wanted.name,
                                   .description = wanted.settings.description,
                                   .validation = label(wanted.settings.validation)});
  add_versions(batch, wanted.name, wanted.settings.versions);
  const auto loaded = batch.add(sql::load_event_types{.after = "", .name = one, .limit = 1});
  add_audit(batch, caller, std::move(entry));
  add_note(batch, ChangeKind::event_type);
  pg::Results results = co_await transaction.run(std::move(batch));
  co_await transaction.commit();
  put.type = read_type(results.take(loaded).front());
  co_return put;
}

Task<std::optional<Rejection>> delete_event_type(pg::Link& link, const Caller& caller, std::string name) {
  pg::Transaction transaction = co_await link.begin();
  const auto found = co_await transaction.run(sql::lock_event_type{.name = name});
  if (found.empty()) co_return Rejection{RejectionKind::unknown_event_type};
  if (!caller.if_match.accepts(found.front().revision)) co_return Rejection{RejectionKind::changed_meanwhile};
  pg::Batch batch;
  batch.add(sql::delete_event_type{.name = name});
  add_audit(batch, caller, {.action = "event_type.delete", .object = name});
  add_note(batch, ChangeKind::event_type);
  co_await transaction.run(std::move(batch));
  co_await transaction.commit();
  co_return std::nullopt;
}

}  // namespace postrider::registry
