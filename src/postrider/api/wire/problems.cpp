#include "postrider/api/wire/problems.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "postrider/base/check.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::api {

namespace {

using registry::Rejection;
using registry::RejectionKind;
using std::chrono::seconds;

http::Problem field(std::string pointer, std::string detail) {
  return invalid({{std::move(pointer), std::move(detail)}});
}

constexpr size_t kShownIdBytesMax = 128;

bool is_shown(char c) {
  return c > ' ' && c < 0x7F && c != '`';
}

std::string or_else(const std::string& detail, std::string otherwise) {
  if (detail.empty()) return otherwise;
  return detail;
}

// The object does not exist.
std::optional<http::Problem> problem_of_lookup(RejectionKind kind) {
  switch (kind) {
    case RejectionKind::unknown_tenant:
      return unknown("tenant");
    case RejectionKind::unknown_endpoint:
      return unknown("endpoint");
    case RejectionKind::unknown_subscription:
      return problem(404, "unknown-subscription", "The endpoint has no subscription to this pattern.");
    case RejectionKind::unknown_secret:
      return unknown("secret");
    case RejectionKind::unknown_source:
      return unknown("source");
    case RejectionKind::unknown_event_type:
      return problem(404, "unknown-event-type", "This event type is not in the catalogue.");
    case RejectionKind::unknown_contact:
      return problem(404, "unknown-contact", "The tenant has no contact with this address.");
    default:
      return std::nullopt;
  }
}

// A field of the request is invalid.
std::optional<http::Problem> problem_of_field(const Rejection& rejection) {
  switch (rejection.kind) {
    case RejectionKind::unknown_forward_tenant:
      return field("/forward/tenant_id", "does not exist");
    case RejectionKind::secret_in_use:
      return field("/secret", "is already an active secret");
    case RejectionKind::secret_invalid:
      return field("/secret", or_else(rejection.detail, "is not valid for the signature scheme"));
    case RejectionKind::secret_differs:
      return field("/secret", "is not the current secret; rotate secrets to change them");
    case RejectionKind::url_contact:
      return field("/address", "is a URL; only e-mail addresses need confirmation");
    case RejectionKind::abandoned:
      return invalid({});
    default:
      return std::nullopt;
  }
}

struct StateProblem {
  RejectionKind kind;
  const char* type;
  const char* detail;
};
// 409: what exists is in the way.
constexpr StateProblem kConflicts[] = {
    {RejectionKind::source_exists, "source-exists", "A source with this ID already exists."},
    {RejectionKind::is_last_secret, "last-secret", "This is the only active secret; add another one first."},
    {RejectionKind::tenant_exists, "tenant-exists", "A tenant with this ID already exists."},
    {RejectionKind::tenant_id_used, "tenant-id-used",
     "A tenant with this ID was deleted. IDs of deleted tenants cannot be used again."},
    {RejectionKind::reserved_tenant, "reserved-tenant",
     "The tenant `postrider` is reserved for operational events and cannot be changed."},
    {RejectionKind::endpoint_exists, "endpoint-exists", "An endpoint with this ID already exists."},
    {RejectionKind::reserved_id, "reserved-id",
     "IDs that begin with `ep_` are reserved for IDs that postrider generates."},
    // The details of these three name the limit.
    {RejectionKind::too_many_endpoints, "too-many-endpoints", ""},
    {RejectionKind::too_many_secrets, "too-many-secrets", ""},
    {RejectionKind::too_many_event_types, "too-many-event-types", ""},
    {RejectionKind::endpoint_disabled, "endpoint-disabled", "The endpoint is disabled; resume it first."},
    {RejectionKind::is_current_secret, "current-secret",
     "The current secret cannot be deleted; rotate it instead."},
    {RejectionKind::contact_confirmed, "contact-confirmed", "This address is already confirmed."},
    {RejectionKind::contact_unsubscribed, "contact-unsubscribed",
     "This address unsubscribed. Only its owner can confirm it again; request a confirmation mail."},
};

http::Problem problem_of_state(const Rejection& rejection) {
  for (const StateProblem& conflict : kConflicts)
    if (conflict.kind == rejection.kind)
      return problem(409, conflict.type, or_else(rejection.detail, conflict.detail));
  if (rejection.kind == RejectionKind::changed_meanwhile)
    return problem(412, "precondition-failed",
                   "The resource was modified since you read it (ETag mismatch). Fetch it and try again.");
  if (rejection.kind == RejectionKind::stopped_by_operator)
    return problem(403, "stopped-by-operator", rejection.detail);
  CHECK(rejection.kind == RejectionKind::operators_only);
  return operators_only();
}

}  // namespace

http::Problem problem(int status, std::string type, std::string detail) {
  http::Problem made;
  made.status = status;
  made.type = std::move(type);
  made.detail = std::move(detail);
  return made;
}

http::Problem try_later(int status, std::string type, std::string detail, seconds wait) {
  auto made = problem(status, std::move(type), std::move(detail));
  made.retry_after = wait;
  return made;
}

http::Problem unknown(std::string_view what) {
  std::string type = "unknown-" + std::string(what), detail = "There is no such " + std::string(what) + ".";
  std::ranges::replace(type, ' ', '-');
  return problem(404, std::move(type), std::move(detail));
}

http::Problem with_id(http::Problem problem, const http::Request& request) {
  constexpr std::string_view kUnknown = "unknown-";
  if (problem.status != 404 || !problem.type.starts_with(kUnknown)) return problem;
  const std::string kind = problem.type.substr(kUnknown.size());
  const auto found = std::ranges::find(request.path_parameters, kind, &http::Parameter::name);
  if (found == request.path_parameters.end() || problem.detail != unknown(kind).detail) return problem;
  const std::string& id = found->value;
  const bool can_be_shown = !id.empty() && id.size() <= kShownIdBytesMax && std::ranges::all_of(id, is_shown);
  if (can_be_shown) problem.detail = "There is no " + kind + " `" + id + "`.";
  return problem;
}

http::Problem problem_of(const Rejection& rejection) {
  if (auto of_lookup = problem_of_lookup(rejection.kind)) return std::move(*of_lookup);
  if (auto of_field = problem_of_field(rejection)) return std::move(*of_field);
  return problem_of_state(rejection);
}

http::Problem problem_of(const pg::Error& error) {
  if (error.kind() == pg::Kind::item) {
    telemetry::log_error("database_rejected_data")
        .field("sqlstate", error.sqlstate())
        .field("error", error.what());
    return problem(422, "invalid", "The request is invalid: the database rejected a value.");
  }
  if (is_statement_timeout(error)) {
    telemetry::log_warn("statement_timeout").field("error", error.what());
    return problem(
        503, "too-slow",
        "The database canceled this request because it took too long. Use a shorter time range, a narrower "
        "filter or a smaller limit.");
  }
  if (error.kind() == pg::Kind::other)
    telemetry::log_error("database_failure").field("sqlstate", error.sqlstate()).field("error", error.what());
  else
    telemetry::log_warn("database_unavailable").field("error", error.what());
  return try_later(
      503, "unavailable",
      error.kind() == pg::Kind::unknown
          ? "The database connection was lost before the result arrived; the change may have been made."
          : "The database is unavailable. Try again later.");
}

bool is_statement_timeout(const pg::Error& error) {
  return error.sqlstate() == "57014";
}

http::Problem invalid(FieldProblems errors) {
  auto made = problem(422, "invalid", "The request is invalid.");
  made.errors = std::move(errors);
  return made;
}

http::Problem unauthorized(NotAuthenticated why) {
  switch (why) {
    case NotAuthenticated::header_missing:
      return problem(401, "unauthorized",
                     "The Authorization header is missing. Send `Authorization: Bearer <key>`.");
    case NotAuthenticated::header_malformed:
      return problem(401, "unauthorized",
                     "The Authorization header is malformed. It must have the form `Bearer <key>`.");
    case NotAuthenticated::key_invalid:
      break;
  }
  return problem(401, "unauthorized", "The API key is not valid: it is unknown, expired or revoked.");
}

http::Problem forbidden(std::string detail) {
  return problem(403, "forbidden", std::move(detail));
}

http::Problem operators_only(FieldProblems errors) {
  auto made = problem(
      403, "operators-only",
      "Only operators can do this: use a key with the role operator or admin that is not bound to a tenant.");
  made.errors = std::move(errors);
  return made;
}

http::Problem configured_by_file(std::string_view what) {
  return problem(409, "configured-by-file",
                 "This " + std::string(what) + " is defined in the configuration file; change it there.");
}

http::Problem not_json() {
  return problem(415, "unsupported-media-type",
                 "The request body must be application/json, without content encoding.");
}

http::Problem malformed(std::string detail) {
  return problem(400, "malformed", std::move(detail));
}

}  // namespace postrider::api
