// /healthz: the process lives. /readyz: it can serve. /metrics: Prometheus. None needs a key.
#include "postrider/api/wire/routes.hpp"

namespace postrider::api {

namespace {

std::optional<std::string> why_not_ready(const Services& services) {
  if (!services.pool.is_up() || !services.lookups.is_up()) return "no database connection";
  if (!services.registry.ids.is_ready()) return "not registered in the database yet";
  if (services.why_not_ready) return services.why_not_ready();
  return std::nullopt;
}

Task<Response> healthz(Call&) {
  co_return Response::text(200, "ok\n");
}

Task<Response> readyz(Call& call) {
  if (const auto why = why_not_ready(call.services)) co_return call.reject(try_later(503, "not-ready", *why));
  std::string text = "ready\n";
  if (call.services.readiness_note)
    if (const std::string note = call.services.readiness_note(); !note.empty()) text += note + "\n";
  co_return Response::text(200, std::move(text));
}

Task<Response> metrics(Call& call) {
  Response response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = call.services.metrics.text();
  co_return response;
}

}  // namespace

void add_health_routes(Routes& routes) {
  routes.add(Method::get, "/healthz", Access::everyone, healthz);
  routes.add(Method::get, "/readyz", Access::everyone, readyz);
  routes.add(Method::get, "/metrics", Access::everyone, metrics);
}

}  // namespace postrider::api
