#include "postrider/api/wire/watch.hpp"

#include <chrono>
#include <exception>
#include <utility>

#include "postrider/api/wire/routes.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::api {

namespace {

using namespace std::chrono_literals;

constexpr auto kInterval = 500ms;

bool has_same_rights(const registry::Principal& now, const registry::Principal& before) {
  return now.key == before.key && now.role == before.role && now.tenant == before.tenant &&
         now.sees_payloads == before.sees_payloads && now.session == before.session;
}

Task<bool> has_tenant(const Call& call) {
  const auto& parameters = call.request.path_parameters;
  if (parameters.empty() || parameters.front().name != "tenant") co_return true;
  Services& services = call.services;
  const model::TenantId tenant = call.tenant();
  if (services.tenants.find(tenant, base::BootClock::now())) co_return true;
  co_await wait_for_lookups(services);
  const auto found = co_await services.tenants.load(services.lookups, tenant);
  co_return found.has_value();
}

}  // namespace

void Watches::wake() {
  for (auto next = sleeping_.begin(); next != sleeping_.end();) {
    runtime::Wakeup* wakeup = *next++;
    wakeup->notify();
  }
}

// Of one response.
class Watch {
 public:
  Watch(const Call& call, http::BodyStream& body)
      : call_(call), body_(body), watches_(call.services.watches), wakeup_(call.services.loop) {
    place_ = watches_.sleeping_.insert(watches_.sleeping_.end(), &wakeup_);
  }
  ~Watch() { watches_.sleeping_.erase(place_); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  Task<void> run() {
    while (true) {
      co_await wakeup_.wait_for(kInterval);
      if (is_over_) co_return;
      const bool is_allowed = co_await look();
      if (is_allowed || is_over_) continue;
      telemetry::log_info("stream_ended")
          .field("reason", "the key or its tenant is no longer valid")
          .field("key_id", call_.principal.key.public_id())
          .field("path", call_.request.path);
      body_.cut();
      co_return;
    }
  }
  void end() {
    is_over_ = true;
    wakeup_.notify();
  }

 private:
  // While the database cannot be asked there is nothing new to send, either.
  Task<bool> look() {
    try {
      const bool is_allowed = co_await is_still_allowed(call_);
      co_return is_allowed;
    } catch (const pg::Error&) {
    }
    co_return true;
  }

  const Call& call_;
  http::BodyStream& body_;
  Watches& watches_;
  runtime::Wakeup wakeup_;
  std::list<runtime::Wakeup*>::iterator place_;
  bool is_over_ = false;
};

Task<bool> has_valid_key(const Call& call) {
  if (!call.credential) co_return true;
  const auto now = co_await authenticate(call.services, *call.credential);
  co_return now&& has_same_rights(*now, call.principal);
}

Task<bool> is_still_allowed(const Call& call) {
  const bool is_valid = co_await has_valid_key(call);
  if (!is_valid) co_return false;
  const bool is_there = co_await has_tenant(call);
  co_return is_there;
}

Task<void> run_while_allowed(Call call, Task<void> producing, http::BodyStream& body) {
  Watch watch(call, body);
  runtime::TaskGroup watching;
  watching.spawn(watch.run());
  std::exception_ptr failure;
  try {
    co_await producing;
  } catch (...) {
    failure = std::current_exception();
  }
  watch.end();
  co_await watching.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace postrider::api
