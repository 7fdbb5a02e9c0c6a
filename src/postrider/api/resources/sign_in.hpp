// Shared by the ways in which a browser signs in and out: /console/session and /portal/session.
#pragma once

#include <optional>
#include <string>

#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/web/cookies.hpp"

namespace postrider::api {

// 403 for a page of another server, and for a connection on which others could read the session.
std::optional<http::Problem> problem_of(const web::Visit& visit);
http::Problem wrong_link();

// Of the session that is to be opened.
registry::Caller visitor_of(const Call& call);

// Wrong keys and links of one address: a few per minute.
class SignInAttempt {
 public:
  explicit SignInAttempt(const Call& call);
  std::optional<http::Problem> rejection() const;  // 429
  void note_failure() const;

 private:
  web::SignInGuard* guard_;
  std::string address_;
};

// A session of that kind that this browser still has ends when it signs in again.
Task<void> end_earlier_session(Call& call, registry::SessionKind kind);

// Ends the session of the call, if it has one, and makes the browser forget it.
Task<Response> sign_out(Call& call);

}  // namespace postrider::api
