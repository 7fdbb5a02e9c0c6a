// /openapi.json, and /docs: the same document as a page.
#include "postrider/api/openapi.hpp"

#include <utility>

#include "postrider/api/docs_files.hpp"
#include "postrider/api/openapi.json.hpp"
#include "postrider/api/wire/routes.hpp"

namespace postrider::api {

namespace {

// Only files of this server, nothing inline, no frames. The page can send requests to this server only.
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

Task<Response> icon(Call&) {
  co_return file("image/svg+xml", files::icon_svg);
}

struct Asset {
  std::string_view name, content_type, body;
};
constexpr std::string_view kScript = "text/javascript; charset=utf-8";
constexpr Asset kAssets[] = {{"docs.css", "text/css; charset=utf-8", files::docs_css},
                             {"docs.js", kScript, files::docs_js},
                             {"document.js", kScript, files::document_js},
                             {"elements.js", kScript, files::elements_js},
                             {"samples.js", kScript, files::samples_js},
                             {"try_it.js", kScript, files::try_it_js},
                             {"icon.svg", "image/svg+xml", files::icon_svg}};

Task<Response> docs_file(Call& call) {
  const std::string name = call.parameter("file");
  for (const Asset& asset : kAssets)
    if (asset.name == name) co_return file(asset.content_type, asset.body);
  co_return call.reject(unknown("file"));
}

}  // namespace

std::string_view openapi_document() {
  return openapi_json;
}

void add_openapi_routes(Routes& routes) {
  routes.add(Method::get, "/openapi.json", Access::everyone, document);
  routes.add(Method::get, "/favicon.ico", Access::everyone, icon);
  routes.add(Method::get, "/docs", Access::everyone, docs);
  routes.add(Method::get, "/docs/", Access::everyone, docs);
  routes.add(Method::get, "/docs/{file}", Access::everyone, docs_file);
}

}  // namespace postrider::api
