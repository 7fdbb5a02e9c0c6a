#include "postrider/http/server/problem.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "postrider/base/encoding.hpp"
#include "postrider/base/text.hpp"

namespace postrider::http {

namespace {

// "Not Found" to "not-found".
std::string type_of_status(int status) {
  std::string type(reason_phrase(status));
  std::transform(type.begin(), type.end(), type.begin(),
                 [](char c) { return c == ' ' ? '-' : base::lower(c); });
  return type;
}

std::string title_of(const Problem& problem) {
  return problem.title.empty() ? std::string(reason_phrase(problem.status)) : problem.title;
}

}  // namespace

std::string full_detail(const Problem& problem) {
  std::string detail = problem.detail.empty() ? title_of(problem) : problem.detail;
  const size_t left_out = problem.errors.left_out();
  if (left_out > 0)
    detail += fmt::format(" {} more {} not listed.", left_out, left_out == 1 ? "error is" : "errors are");
  return detail;
}

Response problem(const Problem& problem, std::string_view request_id) {
  using base::json_quoted;
  const std::string type = problem.type.empty() ? type_of_status(problem.status) : problem.type;
  const std::string title = title_of(problem);
  std::string body =
      fmt::format(R"({{"type":{},"title":{},"status":{})", json_quoted("urn:postrider:problem:" + type),
                  json_quoted(title), problem.status);
  body += fmt::format(R"(,"detail":{},"request_id":{})", json_quoted(full_detail(problem)),
                      json_quoted(request_id));
  if (!problem.errors.empty()) {
    body += R"(,"errors":[)";
    for (const FieldProblem& error : problem.errors) {
      if (&error != &*problem.errors.begin()) body += ',';
      body += fmt::format(R"({{"pointer":{},"detail":{}}})", json_quoted(error.pointer),
                          json_quoted(error.detail));
    }
    body += ']';
  }
  body += '}';

  Response response = Response::json(problem.status, std::move(body));
  response.content_type = "application/problem+json";
  if (problem.retry_after) response.header("retry-after", std::to_string(problem.retry_after->count()));
  return response;
}

}  // namespace postrider::http
