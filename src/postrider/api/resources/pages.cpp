// The pages of the console and the portal: /console and everything below it is one page, which decides by the
// address what it shows; its files are below /console/assets/. The same with /portal. They are no operations
// of the API and not in its document.
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/web/assets.hpp"

namespace postrider::api {

namespace {

constexpr std::string_view kNoFrames = "'none'";

Response file_or_not_found(const Call& call, std::string_view app) {
  auto found = web::file(call.request, std::string(app) + "/assets/" + call.parameter("file"));
  if (found) return std::move(*found);
  return call.reject(problem(404, "not-found", "There is no such file. The server may have been upgraded."));
}

Task<Response> console_file(Call& call) {
  co_return file_or_not_found(call, "console");
}

Task<Response> console(Call& call) {
  co_return web::shell(call.request, "console/console.html", kNoFrames);
}

Task<Response> portal_file(Call& call) {
  co_return file_or_not_found(call, "portal");
}

Task<Response> portal(Call& call) {
  constexpr std::string_view page = "portal/portal.html";
  if (!web::find_asset(page))
    co_return call.reject(problem(404, "not-found", "This build of postrider has no portal."));
  co_return web::shell(call.request, page, kNoFrames);
}

// Leads people to the console. Not permanent: a browser must not remember it.
Task<Response> front_page(Call&) {
  Response response = Response::empty(302);
  response.header("location", "/console").header("cache-control", "no-cache");
  co_return response;
}

}  // namespace

void add_page_routes(Routes& routes) {
  routes.add(Method::get, "/", Access::everyone, front_page);
  routes.add_page("/console", console);
  routes.add_page("/console/{path*}", console);
  routes.add_page("/console/assets/{file*}", console_file);
  routes.add_page("/portal", portal);
  routes.add_page("/portal/{path*}", portal);
  routes.add_page("/portal/assets/{file*}", portal_file);
}

}  // namespace postrider::api
