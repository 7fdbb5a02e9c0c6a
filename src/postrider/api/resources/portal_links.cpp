// /v1/tenants/{tenant}/portal-links: one-time links that open the portal of a customer.
#include "postrider/web/portal_links.hpp"

#include <fmt/format.h>

#include <utility>

#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/page.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/registry/tenants.hpp"

namespace postrider::api {

namespace {

using web::PortalLink;
using web::PortalLinkSettings;

constexpr TextRule kLabelRule{.bytes_max = 128};
constexpr TextRule kOriginRule{.bytes_max = 256};
constexpr TextRule kPathRule{.bytes_max = 512};
constexpr IntegerRule kLifetimeRule{60, 86'400};
constexpr IntegerRule kSessionRule{300, 28'800};
constexpr int kLifetimeDefault = 300;
constexpr int kSessionDefault = 3'600;

enum class LinkAccess { manage, read };
std::optional<LinkAccess> parse_access(std::string_view text) {
  if (text == "manage") return LinkAccess::manage;
  if (text == "read") return LinkAccess::read;
  return std::nullopt;
}

JsonObject link_object(const PortalLink& link) {
  const PortalLinkSettings& settings = link.settings;
  JsonObject json;
  json.add("id", link.id.public_id())
      .add("tenant_id", settings.tenant)
      .add("access", settings.is_read_only ? "read" : "manage")
      .add("payloads", settings.sees_payloads)
      .add("preview", settings.is_preview)
      .add("label", settings.label)
      .add("origin", settings.origin)
      .add("path", settings.path.value_or("/"))
      .add("session_seconds", settings.session.count())
      .add("created_at", link.created_at)
      .add("created_by", settings.key.public_id())
      .add("expires_at", link.expires_at)
      .add("used_at", link.used_at)
      .add("session_last_seen_at", link.session_last_seen_at)
      .add("session_expires_at", link.session_expires_at);
  return json;
}

// Only a page of the portal itself: the pages match it against their own list.
bool is_path(std::string_view text) {
  if (!text.starts_with('/') || text.starts_with("//")) return false;
  for (const char c : text)
    if (static_cast<unsigned char>(c) <= ' ' || static_cast<unsigned char>(c) >= 0x7F || c == '\\' ||
        c == '#')
      return false;
  return true;
}

// As with keys, a link gives no more rights than the key that creates it has.
PortalLinkSettings read_settings(const Call& call, const boost::json::object& document,
                                 FieldProblems& problems) {
  PortalLinkSettings settings;
  settings.tenant = call.tenant();
  settings.key = call.principal.key;
  settings.sees_payloads = call.principal.sees_payloads;
  LinkAccess access = LinkAccess::manage;
  int32_t lifetime = kLifetimeDefault, session = kSessionDefault;
  Fields fields(document, "", problems);
  fields.read("expires_in_seconds", lifetime, kLifetimeRule, kLifetimeDefault);
  fields.read("session_seconds", session, kSessionRule, kSessionDefault);
  fields.read<LinkAccess>("access", access, {parse_access, LinkAccess::manage, "manage, read"});
  fields.read("payloads", settings.sees_payloads);
  fields.read("preview", settings.is_preview);
  fields.read("label", settings.label, kLabelRule);
  fields.read("origin", settings.origin, kOriginRule);
  fields.read("path", settings.path, kPathRule);
  if (settings.path && !is_path(*settings.path))
    fields.reject("path", "must be the path of a page below /portal, such as /endpoints");
  if (settings.sees_payloads && !call.principal.sees_payloads)
    fields.reject("payloads",
                  "must be false, because the key that creates the link has no access to payloads");
  if (settings.is_preview && fields.has("access") && access == LinkAccess::manage)
    fields.reject("access", "must be read, because a preview can only read");
  fields.finish();
  settings.is_read_only = settings.is_preview || access == LinkAccess::read;
  settings.lifetime = std::chrono::seconds(lifetime);
  settings.session = std::chrono::seconds(session);
  return settings;
}

http::Problem problem_of(web::LinkRejection rejection, int links_max) {
  if (rejection == web::LinkRejection::unknown_tenant) return unknown("tenant");
  return problem(409, "too-many-links",
                 fmt::format("The tenant has {} links that were not used yet, which is the limit. Delete "
                             "some, or wait until they expire.",
                             links_max));
}

Task<Response> create(Call& call) {
  const auto document = parse_body(call.request, Body::may_be_empty);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  PortalLinkSettings settings = read_settings(call, *document, problems);
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const registry::Caller caller = call.caller();
  const int links_max = call.services.config.tokens_per_tenant_max;
  const pg::Pool::Handle lease = co_await call.database();
  const auto created = co_await web::create_portal_link(*lease, caller, std::move(settings), links_max);
  if (!created) co_return call.reject(problem_of(created.error(), links_max));
  JsonObject json = link_object(created->link);
  json.add("url", call.services.config.public_url + "/portal/enter#l=" + created->token);
  Response response = Response::json(201, json.text());
  response.header("location",
                  "/v1/tenants/" + call.tenant() + "/portal-links/" + created->link.id.public_id());
  response.header("cache-control", "no-store");
  co_return response;
}

Task<Response> list(Call& call) {
  Query query(call.request);
  web::PortalLinkFilter filter;
  filter.tenant = call.tenant();
  filter.limit = query.limit() + 1;
  if (const std::string after = query.after(); !after.empty()) {
    filter.before = model::LinkId::from_public_id(after);
    if (!filter.before) query.reject("cursor", "invalid cursor");
  }
  FieldProblems problems = query.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const int limit = filter.limit - 1;
  const pg::Pool::Handle lease = co_await call.database();
  const std::optional<registry::Tenant> tenant = co_await registry::find_tenant(*lease, call.tenant());
  if (!tenant) co_return call.reject(unknown("tenant"));
  const std::vector<PortalLink> links = co_await web::list_portal_links(*lease, std::move(filter));
  std::vector<PageRow> rows;
  for (const auto& link : links) rows.push_back({link.id.public_id(), link_object(link).text()});
  co_return page(std::move(rows), limit);
}

Task<Response> show(Call& call) {
  web::PortalLinkFilter filter;
  filter.tenant = call.tenant();
  filter.id = model::LinkId::from_public_id(call.parameter("link"));
  filter.limit = 1;
  if (!filter.id) co_return call.reject(unknown("link"));
  const pg::Pool::Handle lease = co_await call.database();
  const std::vector<PortalLink> links = co_await web::list_portal_links(*lease, std::move(filter));
  if (links.empty()) co_return call.reject(unknown("link"));
  co_return Response::json(200, link_object(links.front()).text());
}

Task<Response> remove(Call& call) {
  const auto id = model::LinkId::from_public_id(call.parameter("link"));
  if (!id) co_return call.reject(unknown("link"));
  web::PortalLinkName name{call.tenant(), *id};
  const registry::Caller caller = call.caller();
  const pg::Pool::Handle lease = co_await call.database();
  const bool is_deleted = co_await web::delete_portal_link(*lease, caller, std::move(name));
  if (!is_deleted) co_return call.reject(unknown("link"));
  call.services.sessions.clear();
  call.services.watches.wake();
  co_return Response::empty(204);
}

}  // namespace

void add_portal_link_routes(Routes& routes) {
  const std::string all = "/v1/tenants/{tenant}/portal-links";
  routes.add(Method::post, all, Access::operate, create);
  routes.add(Method::get, all, Access::operate, list);
  routes.add(Method::get, all + "/{link}", Access::operate, show);
  routes.add(Method::delete_, all + "/{link}", Access::operate, remove);
}

}  // namespace postrider::api
