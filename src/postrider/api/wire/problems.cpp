#include "postrider/api/wire/problems.hpp"

#include <utility>

#include "postrider/telemetry/log.hpp"

namespace postrider::api {

namespace {

using registry::Refusal;
using registry::RefusalKind;
using std::chrono::seconds;

http::Problem field(std::string pointer, std::string detail) {
  return invalid({{std::move(pointer), std::move(detail)}});
}

std::string or_else(const std::string& detail, std::string otherwise) {
  if (detail.empty()) return otherwise;
  return detail;
}

}  // namespace

http::Problem problem(int status, std::string type, std::string detail) {
  http::Problem made;
  made.status = status;
  made.type = std::move(type);
  made.detail = std::move(detail);
  return made;
}

http::Problem problem_of(const Refusal& refusal) {
  switch (refusal.kind) {
    case RefusalKind::unknown_tenant:
      return unknown_tenant();
    case RefusalKind::unknown_endpoint:
      return problem(404, "unknown-endpoint", "There is no such endpoint.");
    case RefusalKind::unknown_subscription:
      return problem(404, "unknown-subscription", "The endpoint has no subscription to this pattern.");
    case RefusalKind::unknown_secret:
      return problem(404, "unknown-secret", "There is no such secret.");
    case RefusalKind::unknown_source:
      return problem(404, "unknown-source", "There is no such source.");
    case RefusalKind::source_exists:
      return problem(409, "source-exists", "A source with this ID already exists.");
    case RefusalKind::is_last_secret:
      return problem(409, "last-secret", "This is the only active secret; add another one first.");
    case RefusalKind::unknown_forward_tenant:
      return field("/forward/tenant_id", "does not exist");
    case RefusalKind::unknown_event_type:
      return problem(404, "unknown-event-type", "This event type is not in the catalogue.");
    case RefusalKind::tenant_exists:
      return problem(409, "tenant-exists", "A tenant with this ID already exists.");
    case RefusalKind::tenant_id_used:
      return problem(409, "tenant-id-used",
                     "A tenant with this ID was deleted. IDs of deleted tenants cannot be used again.");
    case RefusalKind::reserved_tenant:
      return problem(409, "reserved-tenant",
                     "The tenant `postrider` is reserved for operational events and cannot be changed.");
    case RefusalKind::endpoint_exists:
      return problem(409, "endpoint-exists", "An endpoint with this ID already exists.");
    case RefusalKind::reserved_id:
      return problem(409, "reserved-id",
                     "IDs that begin with `ep_` are reserved for IDs that postrider generates.");
    case RefusalKind::too_many_endpoints:
      return problem(409, "too-many-endpoints",
                     or_else(refusal.detail, "The tenant has reached its limit of endpoints."));
    case RefusalKind::too_many_secrets:
      return problem(409, "too-many-secrets",
                     "The endpoint has too many active secrets. Delete one that is in its overlap, or rotate "
                     "with overlap_seconds 0.");
    case RefusalKind::too_many_event_types:
      return problem(409, "too-many-event-types", "The catalogue is full.");
    case RefusalKind::changed_meanwhile:
      return problem(412, "precondition-failed",
                     "The resource was modified since you read it (ETag mismatch). Fetch it and try again.");
    case RefusalKind::endpoint_disabled:
      return problem(409, "endpoint-disabled", "The endpoint is disabled; resume it first.");
    case RefusalKind::stopped_by_operator:
      return problem(403, "stopped-by-operator", refusal.detail);
    case RefusalKind::operators_only:
      return operators_only();
    case RefusalKind::is_current_secret:
      return problem(409, "current-secret", "The current secret cannot be deleted; rotate it instead.");
    case RefusalKind::secret_in_use:
      return field("/secret", "is already an active secret");
    case RefusalKind::secret_unfit:
      return field("/secret", or_else(refusal.detail, "is not valid for the signature scheme"));
    case RefusalKind::secret_differs:
      return field("/secret", "is not the current secret; rotate secrets to change them");
    case RefusalKind::unknown_contact:
      return problem(404, "unknown-contact", "The tenant has no contact with this address.");
    case RefusalKind::url_contact:
      return field("/address", "is a URL; only e-mail addresses need confirmation");
    case RefusalKind::contact_confirmed:
      return problem(409, "contact-confirmed", "This address is already confirmed.");
    case RefusalKind::contact_unsubscribed:
      return problem(
          409, "contact-unsubscribed",
          "This address unsubscribed. Only its owner can confirm it again; request a confirmation mail.");
    case RefusalKind::abandoned:
      return invalid({});
  }
  return invalid({});
}

http::Problem problem_of(const pg::Error& error) {
  if (error.kind() == pg::Kind::item) {
    telemetry::log_error("database_refused_data")
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
  auto made = problem(
      503, "unavailable",
      error.kind() == pg::Kind::unknown
          ? "The database connection was lost before the result arrived; the change may have been made."
          : "The database is unavailable. Try again later.");
  made.retry_after = seconds(1);
  return made;
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

http::Problem unknown_tenant() {
  return problem(404, "unknown-tenant", "There is no such tenant.");
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
