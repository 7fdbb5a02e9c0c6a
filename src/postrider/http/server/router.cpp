#include "postrider/http/server/router.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "postrider/base/check.hpp"
#include "postrider/http/server/problem.hpp"

namespace postrider::http {

using runtime::Task;

namespace {

constexpr size_t kMethods = static_cast<size_t>(Method::other);

std::string_view take_segment(std::string_view& path) {
  path.remove_prefix(1);
  const std::string_view segment = path.substr(0, path.find('/'));
  path.remove_prefix(segment.size());
  return segment;
}

void set_parameters(Request& request, const std::vector<std::string>& names,
                    const std::vector<std::string_view>& matched) {
  request.path_parameters.clear();  // a large request was already routed by its head
  for (size_t i = 0; i < matched.size(); ++i) {
    auto value = percent_decode(matched[i]);
    CHECK(value);  // the server has rejected paths that cannot be decoded
    request.path_parameters.push_back({names[i], std::move(*value)});
  }
}

// The path as it was sent, shortened. The target is ASCII, so it can be cut anywhere.
std::string shown_path(const Request& request) {
  constexpr size_t kShownMax = 200;
  const std::string_view path = request.target.substr(0, request.target.find('?'));
  return std::string(path.substr(0, kShownMax)) + (path.size() > kShownMax ? "…" : "");
}

std::string shown_method(const Request& request) {
  if (request.method == Method::other) return "This method";
  return std::string(method_name(request.method));
}

}  // namespace

struct Router::Segment {
  std::map<std::string, std::unique_ptr<Segment>, std::less<>> literals;
  std::unique_ptr<Segment> parameter;  // any one segment
  std::unique_ptr<Segment> rest;       // everything from here on
  struct Target {
    Route route;
    std::vector<std::string> parameter_names;
  };
  std::array<std::optional<Target>, kMethods> targets;

  bool is_path() const {
    return std::any_of(targets.begin(), targets.end(), [](const auto& target) { return target.has_value(); });
  }
  // GET routes also serve HEAD.
  const Target* target(Method method) const {
    if (method == Method::other) return nullptr;
    const auto& own = targets[static_cast<size_t>(method)];
    if (own) return &*own;
    return method == Method::head ? target(Method::get) : nullptr;
  }
  std::string allowed() const {
    std::string list;
    for (size_t i = 0; i < kMethods; ++i) {
      const auto method = static_cast<Method>(i);
      if (!target(method) && method != Method::options) continue;
      if (!list.empty()) list += ", ";
      list += method_name(method);
    }
    return list;
  }

  // Depth first, literals before parameters; collects what the parameters matched, still encoded.
  const Segment* find(std::string_view path, std::vector<std::string_view>& matched) const {
    if (path.empty()) return is_path() ? this : nullptr;
    std::string_view after = path;
    const std::string_view segment = take_segment(after);
    if (const auto literal = literals.find(segment); literal != literals.end())
      if (const Segment* found = literal->second->find(after, matched)) return found;
    if (parameter && !segment.empty()) {
      matched.push_back(segment);
      if (const Segment* found = parameter->find(after, matched)) return found;
      matched.pop_back();
    }
    if (rest && path.size() > 1) {
      matched.push_back(path.substr(1));
      return rest.get();
    }
    return nullptr;
  }
};

Router::Router() : root_(std::make_unique<Segment>()) {}
Router::~Router() = default;

void Router::add(Route route) {
  CHECK(route.pattern.starts_with('/') && route.method != Method::other && route.handle);
  entries_.push_back({route.method, route.pattern});
  Segment* node = root_.get();
  std::vector<std::string> names;
  for (std::string_view path = route.pattern; !path.empty();) {
    const std::string_view segment = take_segment(path);
    std::unique_ptr<Segment>* next = nullptr;
    if (segment.starts_with('{')) {
      CHECK(segment.ends_with('}'));
      const bool is_rest = segment.ends_with("*}");
      CHECK(!is_rest || path.empty());
      names.emplace_back(segment.substr(1, segment.size() - (is_rest ? 3 : 2)));
      next = is_rest ? &node->rest : &node->parameter;
    } else {
      next = &node->literals[std::string(segment)];
    }
    if (!*next) *next = std::make_unique<Segment>();
    node = next->get();
  }
  auto& target = node->targets[static_cast<size_t>(route.method)];
  CHECK(!target);
  target = Segment::Target{std::move(route), std::move(names)};
}

size_t Router::body_bytes_max(const Request& head) const {
  std::vector<std::string_view> matched;
  const Segment* node = head.path.starts_with('/') ? root_->find(head.path, matched) : nullptr;
  const Segment::Target* target = node ? node->target(head.method) : nullptr;
  return target ? target->route.body_bytes_max : 0;
}

Task<Admission> Router::admit(Request& head) {
  std::vector<std::string_view> matched;
  const Segment* node = head.path.starts_with('/') ? root_->find(head.path, matched) : nullptr;
  const Segment::Target* target = node ? node->target(head.method) : nullptr;
  Admission admission;
  if (!target) {
    admission.rejection = co_await handle(head);
  } else if (target->route.admit) {
    set_parameters(head, target->parameter_names, matched);
    admission = co_await target->route.admit(head);
  } else {
    admission.body_bytes_max = target->route.body_bytes_max;
  }
  co_return admission;
}

Task<Response> Router::handle(Request& request) {
  if (request.path == "*") co_return Response::empty(204);
  std::vector<std::string_view> matched;
  const Segment* node = root_->find(request.path, matched);
  if (!node) {
    const Problem unknown{.status = 404,
                          .detail = "There is no route for " +
                                    (request.method == Method::other ? "" : shown_method(request) + " ") +
                                    shown_path(request) + "."};
    co_return problem(request, unknown);
  }
  const Segment::Target* target = node->target(request.method);
  if (!target) {
    const bool asks_options = request.method == Method::options;
    const Problem rejected{.status = 405,
                           .detail = shown_method(request) + " is not allowed for " + shown_path(request) +
                                     " (allowed: " + node->allowed() + ")."};
    Response response = asks_options ? Response::empty(204) : problem(request, rejected);
    response.header("allow", node->allowed());
    co_return response;
  }
  set_parameters(request, target->parameter_names, matched);
  Response response = co_await target->route.handle(request);
  co_return response;
}

std::vector<Router::Entry> Router::routes() const {
  return entries_;
}

}  // namespace postrider::http
