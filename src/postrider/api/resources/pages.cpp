// The pages of the console: /console and everything below it is one page, which decides by the address what
// it shows; its files are below /console/assets/. They are no operations of the API and not in its document.
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
}

}  // namespace postrider::api
