// The problem documents of the API.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "postrider/http/server/problem.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/registry/rejection.hpp"

namespace postrider::api {

using http::FieldProblems;

// `type` is the last part of the problem's URN, such as "unknown-tenant".
http::Problem problem(int status, std::string type, std::string detail);
// The same with Retry-After.
http::Problem try_later(int status, std::string type, std::string detail,
                        std::chrono::seconds wait = std::chrono::seconds(1));
// 404: unknown("event type") has the type "unknown-event-type".
http::Problem unknown(std::string_view what);
// The same with the ID from the request's path, if the path names the object: "There is no tenant `acme`."
http::Problem with_id(http::Problem problem, const http::Request& request);

// The type of every 413, also of those that the HTTP server sends by itself.
inline constexpr auto content_too_large = "content-too-large";

http::Problem problem_of(const registry::Rejection& rejection);

// No database, too busy, or a statement that failed: 503 with Retry-After, unless the data was at fault. A
// statement that took too long: 503 without it, since the same request would take as long again. Details of
// the database are logged, never shown.
http::Problem problem_of(const pg::Error& error);

// The database has stopped a statement that took too long (or a person canceled it). The engine's own batches
// are run again; a request would only take as long again.
bool is_statement_timeout(const pg::Error& error);

// 422 with a pointer per field.
http::Problem invalid(FieldProblems errors);

// 401; the response also needs www-authenticate. Unknown, expired and revoked keys look the same.
enum class NotAuthenticated { header_missing, header_malformed, key_invalid };
http::Problem unauthorized(NotAuthenticated why);
http::Problem forbidden(std::string detail);  // 403
// 403: only operators may do this. `errors` lists the fields that only operators may write.
http::Problem operators_only(FieldProblems errors = {});
http::Problem configured_by_file(std::string_view what);  // 409; "outbox", "source"
http::Problem not_json();                                 // 415
http::Problem malformed(std::string detail);              // 400

}  // namespace postrider::api
