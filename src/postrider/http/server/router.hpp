// Method and path pattern to handler. Patterns: "/v1/tenants/{tenant}/events/{event}"; a last "{name*}" takes
// the rest of the path, slashes included. A literal segment wins over a parameter. Unknown path: 404; known
// path, other method: 405 with Allow; HEAD is served by the GET route; OPTIONS returns the allowed methods.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/base/unique_function.hpp"
#include "postrider/http/server/server.hpp"

namespace postrider::http {

struct Route {
  Method method = Method::get;
  std::string pattern;
  base::UniqueFunction<runtime::Task<Response>(Request&)> handle;  // not a capturing coroutine: call one
  size_t body_bytes_max = 0;                                       // 0: the server's limit
  // Asked before a large body is read; without it such a body is read up to body_bytes_max.
  base::UniqueFunction<runtime::Task<Admission>(Request& head)> admit{};
};

class Router : public Handler {
 public:
  Router();
  ~Router() override;

  void add(Route route);  // two routes with the same method and shape are a bug

  size_t body_bytes_max(const Request& head) const override;
  // A path or method that does not exist is rejected at once.
  runtime::Task<Admission> admit(Request& head) override;
  runtime::Task<Response> handle(Request& request) override;

  struct Entry {
    Method method;
    std::string pattern;
  };
  std::vector<Entry> routes() const;  // in the order they were added

 private:
  struct Segment;
  std::unique_ptr<Segment> root_;
  std::vector<Entry> entries_;
};

}  // namespace postrider::http
