// The HTTP API of one loop: a router with every route, for an http::Server on the same loop.
//
//   api::Api api({.loop = loop, .pool = pool, …});
//   http::Server server(loop, listener, api.router(), server_metrics(metrics), options);
//
// Every resource is a file that adds its routes; problems.cpp words the errors they share.
#pragma once

#include <memory>
#include <span>

#include "postrider/api/wire/routes.hpp"
#include "postrider/api/wire/services.hpp"
#include "postrider/http/server/router.hpp"
#include "postrider/registry/control_log.hpp"

namespace postrider::api {

class Api {
 public:
  explicit Api(Services services);
  ~Api();
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  http::Router& router() { return router_; }
  const std::vector<Routes::Entry>& routes() const { return routes_.entries(); }
  const Services& services() const { return services_; }

  // On the loop's thread, for each piece of the control log that the node has read: drops cached entries.
  void apply(std::span<const registry::Change> changes);

 private:
  Services services_;
  http::Router router_;
  Routes routes_;
};

}  // namespace postrider::api
