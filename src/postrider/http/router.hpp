// Method and path pattern to handler. Patterns: "/v1/tenants/{tenant}/events/{event}"; a last "{name*}" takes
// the rest of the path, slashes included. A literal segment wins over a parameter. Unknown path: 404; known
// path, other method: 405 with Allow; HEAD is answered by the GET route; OPTIONS says what is allowed.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/base/unique_function.hpp"
#include "postrider/http/server.hpp"

namespace postrider::http {

struct Route {
  Method method = Method::get;
  std::string pattern;
  base::UniqueFunction<runtime::Task<Response>(Request&)> handle;  // not a capturing coroutine: call one
  size_t body_bytes_max = 0;                                       // 0: the server's limit
  // Instead, where it depends on what the path names; gets its first parameter. Must not throw.
  base::UniqueFunction<runtime::Task<size_t>(const Request& head, std::string named)> find_body_bytes_max{};
};

class Router : public Handler {
 public:
  Router();
  ~Router() override;

  void add(Route route);  // two routes with the same method and shape are a bug

  size_t body_bytes_max(const Request& head) const override;
  bool takes_time(const Request& head) const override;
  runtime::Task<size_t> find_body_bytes_max(const Request& head) override;
  runtime::Task<Response> handle(Request& request) override;

  struct Entry {
    Method method;
    std::string pattern;
  };
  std::vector<Entry> routes() const;  // in the order they were added

 private:
  struct Node;
  std::unique_ptr<Node> root_;
  std::vector<Entry> entries_;
};

}  // namespace postrider::http
