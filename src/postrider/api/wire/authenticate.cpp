#include "postrider/api/wire/authenticate.hpp"

#include <chrono>
#include <string_view>
#include <utility>

#include "postrider/pg/error.hpp"
#include "postrider/web/cookies.hpp"
#include "postrider/web/sessions.hpp"

namespace postrider::api {

namespace {

using namespace std::chrono_literals;
using runtime::Task;

constexpr size_t kKeyBytesMax = 512;
constexpr auto kConnectPatience = 500ms;  // then 503 with Retry-After

bool equals_ignoring_case(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] + ('a' - 'A')) : text[i];
    if (c != lower[i]) return false;
  }
  return true;
}

// The key of "Bearer <key>".
std::optional<std::string_view> bearer_key(std::string_view field) {
  const size_t space = field.find(' ');
  if (space == std::string_view::npos || !equals_ignoring_case(field.substr(0, space), "bearer"))
    return std::nullopt;
  std::string_view key = field.substr(space + 1);
  while (key.starts_with(' ')) key.remove_prefix(1);
  if (key.empty() || key.size() > kKeyBytesMax) return std::nullopt;
  return key;
}

}  // namespace

base::Result<Credential, NotAuthenticated> find_credential(const http::Request& head) {
  const auto field = head.header("authorization");
  if (!field) {
    const auto token = web::find_session_token(head);
    if (!token) return base::Failure{NotAuthenticated::header_missing};
    return Credential{web::hash_token(*token), true, web::csrf_token(*token)};
  }
  const auto key = bearer_key(*field);
  if (!key) return base::Failure{NotAuthenticated::header_malformed};
  return Credential{registry::hash_key(*key), web::is_embedded_token(*key)};
}

std::optional<http::Problem> find_forgery(const http::Request& request, const Credential& credential,
                                          const config::Config& config) {
  if (!credential.csrf_token || request.method == http::Method::get || request.method == http::Method::head)
    return std::nullopt;
  const auto given = request.header("x-postrider-csrf");
  const bool has_token = given && crypto::constant_time_equal(*given, *credential.csrf_token);
  if (has_token && web::is_from_our_pages(request, config.public_url)) return std::nullopt;
  return problem(403, "cross-site-request",
                 "A change with a session cookie must come from a page of this server, with the session's "
                 "x-postrider-csrf header. Programs use an API key.");
}

Task<std::optional<registry::Principal>> authenticate(Services& services, Credential credential) {
  registry::KeyCache& cache = credential.is_session ? services.sessions : services.keys;
  const registry::KeyCache::Found cached = cache.find(credential.key, base::BootClock::now());
  if (cached.is_known) co_return cached.principal;
  co_await wait_for_lookups(services);
  registry::KeyCache::LookUp look_up{std::nullopt, base::BootClock::now(), cache.generation()};
  if (credential.is_session)
    look_up.found = co_await web::find_session(services.lookups, credential.key);
  else
    look_up.found = co_await registry::find_key(services.lookups, credential.key);
  cache.keep(credential.key, look_up);
  if (!look_up.found) co_return std::nullopt;
  co_return look_up.found->principal;
}

Task<inbox::SourcePtr> find_source(Services& services, std::string id) {
  const auto found = services.sources.find(id, base::BootClock::now());
  if (found.is_known) co_return found.source;
  co_await wait_for_lookups(services);
  co_return co_await services.sources.load(services.lookups, services.registry.keys, std::move(id));
}

Task<void> wait_for_lookups(Services& services) {
  const base::SteadyTime deadline = base::BootClock::now() + kConnectPatience;
  co_await services.lookups.wait_up(deadline);
}

}  // namespace postrider::api
