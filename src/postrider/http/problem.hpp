// RFC 9457: the one way this server says no.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/http/request.hpp"
#include "postrider/http/response.hpp"

namespace postrider::http {

struct FieldProblem {
  std::string pointer;  // JSON pointer into the body, or the name of a query parameter
  std::string detail;
};

struct Problem {
  int status = 400;
  std::string type{};    // "unknown-tenant", sent as urn:postrider:problem:unknown-tenant; by status if empty
  std::string title{};   // by status if empty
  std::string detail{};  // a sentence for people; the title if empty
  std::vector<FieldProblem> errors{};
  std::optional<std::chrono::seconds> retry_after{};
};

Response problem(const Problem& problem, std::string_view request_id);
inline Response problem(const Request& request, const Problem& what) {
  return problem(what, request.id);
}

}  // namespace postrider::http
