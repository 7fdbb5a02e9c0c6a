// /v1/sources and their secrets.
#include "postrider/inbox/sources.hpp"

#include <algorithm>
#include <utility>

#include "postrider/api/resources/source_document.hpp"
#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/page.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/inbox/source_secrets.hpp"

namespace postrider::api {

namespace {

using inbox::NewSourceSecret;
using inbox::SourceSecret;
using registry::Rejection;
using registry::RejectionKind;

constexpr int32_t kOverlapDefault = 86'400;
constexpr IntegerRule kOverlapRule{0, 90 * 86'400};
constexpr TextRule kSecretRule{.bytes_max = 512};

bool is_configured(const Call& call, const std::string& id) {
  const auto& sources = call.services.config.sources;
  return std::ranges::any_of(sources, [&id](const auto& source) { return source.id == id; });
}

// Sources of the configuration file would be created again at the next start.
std::optional<http::Problem> why_fixed(const Call& call, const std::string& id) {
  if (!is_configured(call, id)) return std::nullopt;
  return configured_by_file("source");
}

std::string shown(const Call& call, const inbox::Source& source, SourceExtras extras = {}) {
  extras.is_configured = is_configured(call, source.id);
  return source_json(source, call.services.config.public_url, extras);
}

Task<Response> create(Call& call) {
  auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  inbox::NewSource wanted;
  FieldProblems problems;
  read_source_identity(*document, wanted, problems);
  for (const auto* name : {"id", "provider", "secret"}) document->erase(name);
  read_source(*document, wanted.provider, wanted.settings, problems);
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  if (const auto fixed = why_fixed(call, wanted.id)) co_return call.reject(*fixed);
  const registry::Caller caller = call.caller();
  const pg::Pool::Handle lease = co_await call.database();
  const auto created =
      co_await inbox::create_source(*lease, call.services.registry, caller, std::move(wanted));
  if (!created) co_return call.reject(problem_of(created.error()));
  Response response = Response::json(201, shown(call, created->source, {.secret = &created->secret}));
  response.header("location", "/v1/sources/" + created->source.id).header("cache-control", "no-store");
  co_return response;
}

Task<Response> list(Call& call) {
  Query query(call.request);
  const int limit = query.limit();
  std::string after = query.after();
  FieldProblems problems = query.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const pg::Pool::Handle lease = co_await call.database();
  const auto sources = co_await inbox::list_sources(*lease, std::move(after), limit + 1);
  std::vector<PageRow> rows;
  for (const auto& source : sources) rows.push_back({source.id, shown(call, source)});
  co_return page(std::move(rows), limit);
}

Task<Response> show(Call& call) {
  std::string id = call.parameter("source");
  const pg::Pool::Handle lease = co_await call.database();
  const auto source = co_await inbox::find_source(*lease, id);
  if (!source) co_return call.reject(problem_of(Rejection{RejectionKind::unknown_source}));
  const auto rejections = co_await inbox::list_rejections(*lease, id);
  co_return Response::json(200, shown(call, *source, {.rejections = &rejections}));
}

Task<Response> change(Call& call) {
  const auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  inbox::SourceEdit edit = [&document, &problems](inbox::Provider provider, inbox::SourceSettings& settings) {
    read_source(*document, provider, settings, problems);
    return problems.empty();
  };
  std::string id = call.parameter("source");
  if (const auto fixed = why_fixed(call, id)) co_return call.reject(*fixed);
  const registry::Caller caller = call.caller();
  const pg::Pool::Handle lease = co_await call.database();
  const auto changed = co_await inbox::change_source(*lease, caller, std::move(id), std::move(edit));
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  if (!changed) co_return call.reject(problem_of(changed.error()));
  co_return Response::json(200, shown(call, *changed));
}

Task<Response> remove(Call& call) {
  std::string id = call.parameter("source");
  if (const auto fixed = why_fixed(call, id)) co_return call.reject(*fixed);
  const registry::Caller caller = call.caller();
  const pg::Pool::Handle lease = co_await call.database();
  const std::optional<Rejection> rejection = co_await inbox::delete_source(*lease, caller, std::move(id));
  if (rejection) co_return call.reject(problem_of(*rejection));
  co_return Response::empty(204);
}

JsonObject secret_object(const SourceSecret& secret) {
  JsonObject json;
  json.add("id", secret.id.public_id())
      .add("masked", secret.masked)
      .add("created_at", secret.created_at)
      .add("expires_at", secret.expires_at);
  return json;
}

Task<Response> list_secrets(Call& call) {
  std::string id = call.parameter("source");
  const pg::Pool::Handle lease = co_await call.database();
  const auto secrets = co_await inbox::list_source_secrets(*lease, call.services.registry, std::move(id));
  if (!secrets) co_return call.reject(problem_of(secrets.error()));
  std::vector<std::string> items;
  for (const auto& secret : *secrets) items.push_back(secret_object(secret).text());
  JsonObject json;
  json.raw("data", json_array(items));
  co_return Response::json(200, json.text());
}

Task<Response> insert_secret(Call& call, NewSourceSecret wanted) {
  std::string id = call.parameter("source");
  if (const auto fixed = why_fixed(call, id)) co_return call.reject(*fixed);
  const registry::Caller caller = call.caller();
  const pg::Pool::Handle lease = co_await call.database();
  const auto added = co_await inbox::add_source_secret(*lease, call.services.registry, caller, std::move(id),
                                                       std::move(wanted));
  if (!added) co_return call.reject(problem_of(added.error()));
  JsonObject json = secret_object(added->secret);
  json.add("secret", added->text);
  Response response = Response::json(201, json.text());
  response.header("cache-control", "no-store");
  co_return response;
}

// Another one beside those that are active.
Task<Response> add_secret(Call& call) {
  const auto document = parse_body(call.request, Body::may_be_empty);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  NewSourceSecret wanted;
  Fields fields(*document, "", problems);
  fields.read("secret", wanted.secret, kSecretRule);
  fields.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  co_return co_await insert_secret(call, std::move(wanted));
}

// Another one in place of those that are active, which end with the overlap.
Task<Response> rotate_secret(Call& call) {
  const auto document = parse_body(call.request, Body::may_be_empty);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  NewSourceSecret wanted;
  int32_t overlap_seconds = kOverlapDefault;
  Fields fields(*document, "", problems);
  fields.read("secret", wanted.secret, kSecretRule);
  fields.read("overlap_seconds", overlap_seconds, kOverlapRule, kOverlapDefault);
  fields.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  wanted.overlap = std::chrono::seconds(overlap_seconds);
  co_return co_await insert_secret(call, std::move(wanted));
}

Task<Response> remove_secret(Call& call) {
  const auto secret = model::SecretId::from_public_id(call.parameter("secret"));
  if (!secret) co_return call.reject(problem_of(Rejection{RejectionKind::unknown_secret}));
  std::string id = call.parameter("source");
  if (const auto fixed = why_fixed(call, id)) co_return call.reject(*fixed);
  const registry::Caller caller = call.caller();
  const pg::Pool::Handle lease = co_await call.database();
  const std::optional<Rejection> rejection =
      co_await inbox::delete_source_secret(*lease, caller, std::move(id), *secret);
  if (rejection) co_return call.reject(problem_of(*rejection));
  co_return Response::empty(204);
}

}  // namespace

void add_source_routes(Routes& routes) {
  routes.add(Method::post, "/v1/sources", Access::operate, create);
  routes.add(Method::get, "/v1/sources", Access::read, list);
  routes.add(Method::get, "/v1/sources/{source}", Access::read, show);
  routes.add(Method::patch, "/v1/sources/{source}", Access::operate, change);
  routes.add(Method::delete_, "/v1/sources/{source}", Access::operate, remove);
  routes.add(Method::get, "/v1/sources/{source}/secrets", Access::operate, list_secrets);
  routes.add(Method::post, "/v1/sources/{source}/secrets", Access::operate, add_secret);
  routes.add(Method::post, "/v1/sources/{source}/secrets/rotate", Access::operate, rotate_secret);
  routes.add(Method::delete_, "/v1/sources/{source}/secrets/{secret}", Access::operate, remove_secret);
}

}  // namespace postrider::api
