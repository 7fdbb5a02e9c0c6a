// /openapi.json, and /docs: the same document for people.
#include "postrider/api/openapi.hpp"

#include <utility>

#include "postrider/api/docs_files.hpp"
#include "postrider/api/openapi.json.hpp"
#include "postrider/api/wire/routes.hpp"

namespace postrider::api {

namespace {

// Nothing from elsewhere, nothing inline, no frames: what the document says is shown as text only.
constexpr std::string_view kPolicy =
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

Response file(std::string_view content_type, std::string_view body) {
  Response response;
  response.content_type = content_type;
  response.body = body;
  response.header("content-security-policy", std::string(kPolicy));
  response.header("x-content-type-options", "nosniff");
  response.header("referrer-policy", "no-referrer");
  response.header("cache-control", "no-cache");
  return response;
}

Task<Response> document(Call&) {
  co_return Response::json(200, std::string(openapi_json));
}

Task<Response> docs(Call&) {
  co_return file("text/html; charset=utf-8", files::docs_html);
}

Task<Response> docs_file(Call& call) {
  const std::string name = call.parameter("file");
  if (name == "docs.css") co_return file("text/css; charset=utf-8", files::docs_css);
  if (name == "docs.js") co_return file("text/javascript; charset=utf-8", files::docs_js);
  http::Problem unknown;
  unknown.status = 404;
  unknown.detail = "There is no such file.";
  co_return call.refuse(unknown);
}

}  // namespace

std::string_view openapi_document() {
  return openapi_json;
}

void add_openapi_routes(Routes& routes) {
  routes.add(Method::get, "/openapi.json", Access::everyone, document);
  routes.add(Method::get, "/docs", Access::everyone, docs);
  routes.add(Method::get, "/docs/{file}", Access::everyone, docs_file);
}

}  // namespace postrider::api
