// The one place that says how a refusal or a failure looks from outside.
#pragma once

#include <vector>

#include "postrider/http/problem.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/registry/refusal.hpp"

namespace postrider::api {

using FieldProblems = std::vector<http::FieldProblem>;

http::Problem problem_of(const registry::Refusal& refusal);

// No database, too busy, or a statement that failed: 503 with Retry-After, unless the data was at fault.
// Details of the database are logged, never told.
http::Problem problem_of(const pg::Error& error);

// 422 with a pointer per field.
http::Problem invalid(FieldProblems errors);

http::Problem unauthorized();                             // 401; the answer also needs www-authenticate
http::Problem forbidden();                                // 403
http::Problem unknown_tenant();                           // 404
http::Problem configured_by_file(std::string_view what);  // 409; "outbox", "source"
http::Problem not_json();                                 // 415
http::Problem malformed(std::string detail);              // 400

}  // namespace postrider::api
