// Long responses (streams, exports) continue only while their caller may see them.
#pragma once

#include <list>

#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::http {
class BodyStream;
}

namespace postrider::api {

struct Call;

// The watches of one loop: woken when keys or tenants changed.
class Watches {
 public:
  void wake();

 private:
  friend class Watch;
  std::list<runtime::Wakeup*> sleeping_;
};

// False from the moment the key was revoked, has expired or has other rights. Throws pg::Error.
runtime::Task<bool> has_valid_key(const Call& call);
// The same, and false when the tenant of the path was deleted.
runtime::Task<bool> is_still_allowed(const Call& call);

// Runs `producing`, which writes to `body`, and cuts the connection as soon as is_still_allowed() says no: at
// once when a change is reported, otherwise at the next look, twice a second.
runtime::Task<void> run_while_allowed(Call call, runtime::Task<void> producing, http::BodyStream& body);

}  // namespace postrider::api
