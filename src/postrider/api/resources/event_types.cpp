// /v1/event-types
#include "postrider/registry/event_types.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "postrider/api/wire/conditional.hpp"
#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/page.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/model/event_type.hpp"
#include "postrider/schema/schema.hpp"

namespace postrider::api {

namespace {

using registry::EventType;
using registry::EventTypeSettings;
using registry::EventTypeVersion;
using registry::Validation;

constexpr TextRule kDescriptionRule{.bytes_max = 4096, .may_be_empty = true};
constexpr TextRule kTimeRule{.bytes_max = 64};
constexpr size_t kVersionsMax = 50;
constexpr Fields::WordRule<Validation> kValidationRule{registry::parse_validation, Validation::off,
                                                       "off, warn, reject"};

std::string version_json(const EventTypeVersion& version) {
  JsonObject json;
  json.add("version", version.version)
      .raw_or_null("schema", version.schema)
      .raw_or_null("example", version.example)
      .add("deprecated_at", version.deprecated_at);
  return json.text();
}

std::string type_json(const EventType& type) {
  std::vector<std::string> versions;
  for (const auto& version : type.settings.versions) versions.push_back(version_json(version));
  JsonObject json;
  json.add("name", type.name)
      .add("description", type.settings.description)
      .add("validation", registry::label(type.settings.validation))
      .raw("versions", json_array(versions))
      .add("created_at", type.created_at)
      .add("updated_at", type.updated_at);
  return json.text();
}

Response respond(const EventType& type, int status = 200) {
  Response response = Response::json(status, type_json(type));
  add_etag(response, type.revision);
  return response;
}

// The schema must compile, and the example must fit it.
void check_schema(const Fields& fields, const EventTypeVersion& version, const boost::json::value* example,
                  FieldProblems& problems) {
  if (!version.schema) return;
  const auto schema = schema::Schema::compile(*version.schema);
  if (!schema) {
    problems.push_back({fields.pointer("schema") + schema.error().pointer, schema.error().detail});
    return;
  }
  if (example == nullptr || example->is_null()) return;
  const schema::Report report = schema->check(*example);
  if (report.gave_up)
    problems.push_back({fields.pointer("example"), "takes too much work to validate against the schema"});
  for (const auto& violation : report.violations)
    problems.push_back({fields.pointer("example") + violation.pointer, violation.detail});
}

EventTypeVersion read_version(Fields& fields, FieldProblems& problems) {
  EventTypeVersion version;
  fields.require("version");
  fields.read("version", version.version, {.bytes_max = model::kVersionMax});
  if (!version.version.empty() && !model::is_version(version.version))
    fields.reject("version", "must be up to 64 letters, digits, dots, _ and -");
  if (const auto* schema = fields.take("schema"); schema && !schema->is_null()) {
    if (schema->is_object() || schema->is_bool())
      version.schema = boost::json::serialize(*schema);
    else
      fields.reject("schema", "must be a JSON Schema: an object, true or false");
  }
  const auto* example = fields.take("example");
  if (example && !example->is_null()) version.example = boost::json::serialize(*example);
  std::optional<std::string> deprecated_at;
  fields.read("deprecated_at", deprecated_at, kTimeRule);
  if (deprecated_at) {
    version.deprecated_at = base::parse_rfc3339(*deprecated_at);
    if (!version.deprecated_at) fields.reject("deprecated_at", time_rule);
  }
  fields.finish();
  check_schema(fields, version, example, problems);
  return version;
}

EventTypeSettings read_settings(const boost::json::object& document, FieldProblems& problems) {
  EventTypeSettings settings;
  Fields fields(document, "", problems);
  fields.read("description", settings.description, kDescriptionRule);
  fields.read("validation", settings.validation, kValidationRule);
  for (const auto* shown : {"name", "created_at", "updated_at"}) fields.take(shown);  // as GET shows them
  const auto* value = fields.take("versions");
  fields.finish();
  if (!value || value->is_null()) return settings;
  const auto* array = value->if_array();
  if (!array || array->size() > kVersionsMax) {
    fields.reject("versions", "must be an array of at most " + std::to_string(kVersionsMax) + " versions");
    return settings;
  }
  for (size_t i = 0; i < array->size(); ++i) {
    const auto* object = (*array)[i].if_object();
    if (!object) {
      fields.reject("versions", i, "must be an object");
      continue;
    }
    Fields members(*object, fields.pointer("versions") + "/" + std::to_string(i), problems);
    EventTypeVersion version = read_version(members, problems);
    const auto is_same = [&](const EventTypeVersion& other) { return other.version == version.version; };
    if (std::any_of(settings.versions.begin(), settings.versions.end(), is_same))
      members.reject("version", "is listed twice");
    settings.versions.push_back(std::move(version));
  }
  return settings;
}

Task<Response> list(Call& call) {
  Query query(call.request);
  const int limit = query.limit();
  std::string after = query.after();
  FieldProblems problems = query.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const pg::Pool::Handle lease = co_await call.database();
  const std::vector<EventType> types =
      co_await registry::list_event_types(*lease, std::move(after), limit + 1);
  std::vector<PageRow> rows;
  for (const auto& type : types) rows.push_back({type.name, type_json(type)});
  co_return page(std::move(rows), limit);
}

Task<Response> show(Call& call) {
  std::string name = call.parameter("name");
  const pg::Pool::Handle lease = co_await call.database();
  const std::optional<EventType> type = co_await registry::find_event_type(*lease, std::move(name));
  if (!type)
    co_return call.reject(problem_of(registry::Rejection{registry::RejectionKind::unknown_event_type}));
  co_return respond(*type);
}

Task<Response> put(Call& call) {
  const auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  registry::PutEventType wanted;
  wanted.name = call.parameter("name");
  if (!model::is_event_type(wanted.name))
    problems.push_back({"name", "must be words of A-Z, a-z, 0-9, _ and - joined by dots"});
  wanted.settings = read_settings(*document, problems);
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const pg::Pool::Handle lease = co_await call.database();
  const registry::Caller caller = call.caller();
  const auto result = co_await registry::put_event_type(*lease, caller, std::move(wanted));
  if (!result) co_return call.reject(problem_of(result.error()));
  co_return respond(result->type, result->is_new ? 201 : 200);
}

Task<Response> remove(Call& call) {
  std::string name = call.parameter("name");
  const pg::Pool::Handle lease = co_await call.database();
  const registry::Caller caller = call.caller();
  const std::optional<registry::Rejection> rejection =
      co_await registry::delete_event_type(*lease, caller, std::move(name));
  if (rejection) co_return call.reject(problem_of(*rejection));
  co_return Response::empty(204);
}

}  // namespace

void add_event_type_routes(Routes& routes) {
  // The catalogue is no tenant's data: keys that are bound to one may read it, too.
  const RouteOptions everybody{.bound_keys = BoundKeys::confined};
  routes.add(Method::get, "/v1/event-types", Access::read, list, everybody);
  routes.add(Method::get, "/v1/event-types/{name}", Access::read, show, everybody);
  routes.add(Method::put, "/v1/event-types/{name}", Access::operate, put);
  routes.add(Method::delete_, "/v1/event-types/{name}", Access::operate, remove);
}

}  // namespace postrider::api
